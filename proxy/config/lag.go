package config

import (
	"strconv"

	"github.com/wirewait/wirewait/inject"
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
	if ok && (err != nil || !(f > 0 && f <= 1)) {
		r.problem(n, "ramp is %s: write how many seconds the lag may change by in a second, above 0 and up to 1, such as 0.5", quote(follow(n)))
		return 0
	}
	return f
}
