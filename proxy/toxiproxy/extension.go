package toxiproxy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy/config"
)

// extension are attributes that Toxiproxy has not, as they were sent. On every
// toxic:
//
//	match   which messages: the keys of a rule's when, as an object or, for a
//	        client that sends text only, "command=insert;collection=orders"
//	ttl     how long, in ms or as "30s", until the toxic is gone by itself
//	first   only so many of the first matches; nth: only this one
//
// and on one of a type that is an effect of wirewait's (refuse, lose_reply, ...)
// the effect's parameters.
type extension map[string]json.RawMessage

var everyToxic = []string{"match", "ttl", "first", "nth"}

// pick takes in the attributes that are known of: all, on a type of ours.
func (e extension) pick(sent map[string]json.RawMessage, all bool) {
	for k, v := range sent {
		switch {
		case !all && !slices.Contains(everyToxic, k):
		case string(v) == "null":
			delete(e, k)
		default:
			e[k] = v
		}
	}
}

// effectNamed is the effect that a type of ours is.
func effectNamed(kind string) bool {
	return types[kind] == nil && slices.Contains(inject.EffectNames(), kind)
}

// rule reads the attributes. kind is the effect whose parameters are among them;
// empty: none are.
func (e extension) rule(kind string) (r inject.Rule, ttl time.Duration, err *apiError) {
	text := map[string]any{"name": "x", "effect": kind}
	if kind == "" {
		text["effect"] = "hold" // any that has no parameters
	}
	limit, with := map[string]any{}, map[string]any{}
	for k, v := range e {
		switch k {
		case "match":
			if text["when"], err = matchOf(v); err != nil {
				return r, 0, err
			}
		case "ttl":
			if ttl, err = ttlOf(v); err != nil {
				return r, 0, err
			}
		case "first", "nth":
			limit[k] = v
		default:
			with[k] = plain(v)
		}
	}
	if len(limit) > 0 {
		text["limit"] = limit
	}
	if len(with) > 0 {
		text["with"] = with
	}
	b, failed := json.Marshal(text)
	if failed != nil {
		return r, 0, bad("attributes: %v", failed)
	}
	rules, failed := config.ParseRules("attributes", b)
	if failed != nil {
		return r, 0, bad("%s", complaint(failed))
	}
	r = rules[0]
	r.Limit.Until = ttl
	return r, ttl, nil
}

// complaint is what the reader of rules says, without the places in a text that
// nobody wrote.
func complaint(err error) string {
	ps, ok := err.(config.Problems)
	if !ok {
		return err.Error()
	}
	var words []string
	for _, p := range ps {
		words = append(words, p.Text)
	}
	return strings.Join(words, "; ")
}

// plain makes truth of text, for clients that send nothing else.
func plain(v json.RawMessage) any {
	switch string(v) {
	case `"true"`:
		return true
	case `"false"`:
		return false
	}
	return v
}

func ttlOf(v json.RawMessage) (time.Duration, *apiError) {
	var n float64
	if json.Unmarshal(v, &n) == nil {
		if d := time.Duration(n * float64(time.Millisecond)); n > 0 && n < float64(longest) && d > 0 {
			return d, nil
		}
	}
	var s string
	if json.Unmarshal(v, &s) == nil {
		if d, err := time.ParseDuration(s); err == nil && d > 0 {
			return d, nil
		}
	}
	return 0, bad("ttl is %s: write milliseconds, or a text such as \"30s\"", v)
}

// matchOf is what a rule's when says.
func matchOf(v json.RawMessage) (map[string]any, *apiError) {
	var when map[string]any
	var words string
	switch {
	case json.Unmarshal(v, &when) == nil:
	case json.Unmarshal(v, &words) == nil:
		when = map[string]any{}
		// toxiproxy-cli cuts an attribute at its commas.
		for part := range strings.SplitSeq(strings.ReplaceAll(words, ",", ";"), ";") {
			k, value, ok := strings.Cut(part, "=")
			if k = strings.TrimSpace(k); !ok || k == "" {
				return nil, bad("match is %q: write key=value, such as command=insert, with semicolons between them", words)
			}
			add(when, k, strings.TrimSpace(value))
		}
	default:
		return nil, bad(`match is %s: write an object, such as {"command": "insert"}`, v)
	}
	for _, k := range slices.Sorted(maps.Keys(when)) {
		switch k {
		case "link", "to":
			return nil, bad("match: %s is the proxy that the toxic is on: leave it out", k)
		case "direction":
			return nil, bad("match: direction is the toxic's stream: leave it out")
		}
	}
	return when, nil
}

// add puts a value beside those that a key has.
func add(when map[string]any, k, v string) {
	if k == "monitors" {
		when[k] = v == "true"
		return
	}
	values, _ := when[k].([]string)
	when[k] = append(values, v)
}
