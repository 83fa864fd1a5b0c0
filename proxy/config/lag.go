package config

import (
	"strconv"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// lagParameters are those that only a lag has.
func (r *reader) lagParameters(o *object, w *inject.With) {
	if v := o.get("ramp"); v != nil {
		w.Ramp = r.ramp(v)
	}
	if v := o.get("acknowledgements"); v != nil {
		w.Acknowledgements = r.boolean(v, "acknowledgements")
	}
}

// ramp is in seconds per second.
func (r *reader) ramp(n *node) float64 {
	v, ok := r.text(n, "ramp")
	f, err := strconv.ParseFloat(v, 64)
	if ok && (err != nil || !(f >= inject.LeastRamp && f <= 1)) {
		r.problem(n, "ramp is %s: write how many seconds the lag may change by in a second, 0.001 to 1, such as 0.5", quote(follow(n)))
		return 0
	}
	return f
}

// walTimeouts are for the warnings of lags.
func (r *reader) walTimeouts(o *object, c *cluster) {
	for key, to := range map[string]*time.Duration{
		"wal_sender_timeout": &c.WALTimeouts.Sender, "wal_receiver_timeout": &c.WALTimeouts.Receiver,
	} {
		v := o.get(key)
		if v == nil {
			continue
		}
		if c.Protocol == wire.MongoDB {
			r.problem(v, "cluster %s is MongoDB's, which has no %s: leave it out", c.Name, key)
			continue
		}
		if *to, _ = r.duration(v, key); *to == 0 {
			*to = proxy.Never // as PostgreSQL has it
		}
	}
}

// timeoutsOf are those of a member's cluster.
func (t *topology) timeoutsOf(name string) (w proxy.WALTimeouts) {
	for _, c := range t.clusters {
		for _, m := range c.members {
			if m.Name == name {
				w = c.WALTimeouts
			}
		}
	}
	return w
}
