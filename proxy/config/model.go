package config

import (
	"strconv"
	"strings"

	"github.com/wirewait/wirewait/inject"
)

// model reads what a pair of sites does besides delaying: the shape of its
// jitter, loss, bandwidth and window. It is the same for both ways.
func (r *reader) model(o *object, d *inject.Delay) {
	if n := o.get("distribution"); n != nil {
		d.Distribution, _ = inject.ParseDistribution(r.choice(n, "distribution", distributionWords))
	}
	if n := o.get("correlation"); n != nil {
		d.Correlation, _ = r.share(n, "correlation", false)
	}
	for _, key := range []string{"distribution", "correlation"} {
		if n := o.get(key); n != nil && o.lacks("jitter") {
			r.problem(n, "%s is of jitter, and there is none: add jitter, or leave this out", key)
		}
	}
	if n := o.get("loss"); n != nil {
		d.Loss = r.loss(n)
	}
	shared, each := o.get("bandwidth"), o.get("bandwidth_per_connection")
	switch {
	case shared != nil && each != nil:
		r.problem(each, "bandwidth is given already: leave out one of bandwidth, which all connections share, and bandwidth_per_connection")
	case shared != nil:
		d.Bandwidth = r.quantity(shared, "bandwidth", bitUnits, "200Mbit/s")
	case each != nil:
		d.Bandwidth, d.PerConnection = r.quantity(each, "bandwidth_per_connection", bitUnits, "200Mbit/s"), true
	}
	if n := o.get("window"); n != nil {
		d.Window = r.quantity(n, "window", byteUnits, "6MiB")
	}
}

// loss is a share of all segments, or the model of Gilbert and Elliott.
func (r *reader) loss(n *node) (l inject.Loss) {
	if follow(n).Kind != mappingKind {
		rate, _ := r.share(n, "loss", false)
		return inject.RandomLoss(rate)
	}
	o, ok := r.object(n, lossKeys)
	if !ok {
		return l
	}
	l.Bad = 1
	for key, to := range map[string]*float64{"p": &l.P, "r": &l.R, "bad": &l.Bad, "good": &l.Good} {
		v := o.get(key)
		if v == nil {
			continue
		}
		*to, ok = r.share(v, key, key != "good")
		if ok && *to == 0 && (key == "p" || key == "r") {
			r.problem(v, "%s is 0%%, so that one of the two states is never left: write more, or loss: 1%% for loss without bursts", key)
		}
	}
	if o.lacks("p") || o.lacks("r") {
		r.problem(n, "loss in bursts needs p and r, the chances to begin and to end one: write {p: 0.1%%, r: 30%%}")
	}
	return l
}

// share is a percentage as a number from 0 to 1, and below 1 unless all is
// allowed.
func (r *reader) share(n *node, what string, all bool) (float64, bool) {
	v, ok := r.text(n, what)
	if !ok {
		return 0, false
	}
	n = follow(n)
	number, percent := strings.CutSuffix(v, "%")
	f, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || !percent:
		r.problem(n, "%s is %s: write a percentage, such as 0.1%%", what, quote(n))
	case !(f >= 0 && f <= 100):
		r.problem(n, "%s is %s: write a percentage from 0%% to 100%%", what, quote(n))
	case f == 100 && !all:
		r.problem(n, "%s is %s: write less than 100%%", what, quote(n))
	default:
		return f / 100, true
	}
	return 0, false
}

// unit is a name and how many of the smallest it has.
type unit struct {
	name string
	size float64
}

// Longer names stand before those that they end in.
var (
	bitUnits  = []unit{{"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"bit/s", 1}}
	byteUnits = []unit{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}
)

// maxQuantity is far above what a wire has, and a number that float64 and int64
// both hold.
const maxQuantity = 1 << 50

func (r *reader) quantity(n *node, what string, units []unit, example string) int64 {
	v, ok := r.text(n, what)
	if !ok {
		return 0
	}
	n = follow(n)
	for _, u := range units {
		number, found := strings.CutSuffix(v, u.name)
		if !found {
			continue
		}
		f, err := strconv.ParseFloat(number, 64)
		if err == nil && f*u.size >= 1 && f*u.size <= maxQuantity {
			return int64(f * u.size)
		}
		break
	}
	var names []string
	for _, u := range units {
		names = append(names, u.name)
	}
	r.problem(n, "%s is %s: write a number above 0 with %s and no space between, such as %s", what, quote(n), list(names), example)
	return 0
}
