package inject

import (
	"encoding/json"
	"strconv"
	"time"
)

// MarshalJSON writes the rule with the keys and the units that it has in a file,
// which config.ParseRules reads.
func (r Rule) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name   string         `json:"name"`
		When   map[string]any `json:"when,omitempty"`
		Effect string         `json:"effect"`
		With   map[string]any `json:"with,omitempty"`
		Limit  map[string]any `json:"limit,omitempty"`
	}{r.Name, r.When.keys(), r.Effect.String(), r.With.keys(r.Effect), r.Limit.keys()})
}

// keyed are an object's keys that have a value.
type keyed map[string]any

func (k keyed) text(key, v string) {
	if v != "" {
		k[key] = v
	}
}

func (k keyed) texts(key string, v []string) {
	if v != nil {
		k[key] = v
	}
}

func (k keyed) flag(key string, v bool) {
	if v {
		k[key] = true
	}
}

func (k keyed) duration(key string, v time.Duration) {
	if v != 0 {
		k[key] = v.String()
	}
}

func (k keyed) amount(key string, v int64, unit string) {
	if v != 0 {
		k[key] = strconv.FormatInt(v, 10) + unit
	}
}

func (w *When) keys() keyed {
	k := keyed{}
	k.texts("link", w.Link)
	k.texts("from", w.From)
	k.texts("to", w.To)
	k.texts("command", w.Command)
	k.texts("collection", w.Collection)
	k.texts("statement", w.Statement)
	k.texts("database", w.Database)
	k.texts("user", w.User)
	k.texts("application", w.Application)
	k.texts("synchronous_commit", w.SynchronousCommit)
	var concerns []any
	for _, c := range w.WriteConcern {
		if c.J == "" {
			concerns = append(concerns, c.W)
			continue
		}
		d := keyed{"j": c.J == "true"}
		d.text("w", c.W)
		concerns = append(concerns, d)
	}
	if concerns != nil {
		k["write_concern"] = concerns
	}
	if w.Direction != BothWays {
		k["direction"] = w.Direction.String()
	}
	k.flag("monitors", w.Monitors)
	return k
}

func (w *With) keys(e Effect) keyed {
	k := keyed{}
	k.duration("delay", w.Delay)
	k.duration("jitter", w.Jitter)
	if w.Ramp > 0 {
		k["ramp"] = w.Ramp
	}
	k.flag("acknowledgements", w.Acknowledgements)
	k.duration("after", w.After)
	if k.amount("bandwidth", w.Bandwidth, "bit/s"); e == EffectBandwidth && w.Bandwidth == 0 {
		k["bandwidth"] = "0"
	}
	if l := w.Loss; l != (Loss{}) {
		k["loss"] = percent(l.Good)
		if l.P > 0 {
			k["loss"] = keyed{"p": percent(l.P), "r": percent(l.R), "bad": percent(l.Bad), "good": percent(l.Good)}
		}
	}
	k.amount("size", int64(w.Size), "B")
	k.amount("variation", int64(w.Variation), "B")
	k.amount("bytes", w.Bytes, "B")
	k.text("code", w.Code)
	k.flag("write_concern_error", w.WriteConcernError)
	k.flag("fatal", w.Fatal)
	k.text("message", w.Message)
	k.texts("labels", w.Labels)
	return k
}

func (l *Limit) keys() keyed {
	k := keyed{}
	if l.Probability > 0 {
		k["probability"] = percent(l.Probability)
	}
	if l.Nth > 0 {
		k["nth"] = l.Nth
	}
	if l.First > 0 {
		k["first"] = l.First
	}
	k.duration("until", l.Until)
	return k
}

func percent(p float64) string { return strconv.FormatFloat(p*100, 'g', -1, 64) + "%" }
