package trace

import (
	"reflect"
	"strings"
	"testing"
)

// As syncrep_gram.y and syncrep_scanner.l have it.
func TestParseStandbyNames(t *testing.T) {
	list := func(any bool, n int, names ...string) *StandbyNames { return &StandbyNames{any, n, names} }
	for value, want := range map[string]*StandbyNames{
		"":                         list(false, 1),
		" \t\n ":                   list(false, 1),
		"s1":                       list(false, 1, "s1"),
		"s1, s2":                   list(false, 1, "s1", "s2"),
		"*":                        list(false, 1, "*"),
		"s1,*":                     list(false, 1, "s1", "*"),
		"ANY 1 (s1, s2)":           list(true, 1, "s1", "s2"),
		"any 2(s1,s2,s3)":          list(true, 2, "s1", "s2", "s3"),
		"FIRST 1 (s2, s1)":         list(false, 1, "s2", "s1"),
		"first 2 (*)":              list(false, 2, "*"),
		"2 (s1, s2, s3)":           list(false, 2, "s1", "s2", "s3"),
		"2(s1)":                    list(false, 2, "s1"),
		"2":                        list(false, 1, "2"), // a standby called 2
		"1, 2":                     list(false, 1, "1", "2"),
		"ANY 1 (1, 2)":             list(true, 1, "1", "2"),
		`"a b", "any", "c""d"`:     list(false, 1, "a b", "any", `c"d`),
		`ANY 1 ("*")`:              list(true, 1, "*"),
		"_x$1, été":                list(false, 1, "_x$1", "été"),
		"anyone, firstly":          list(false, 1, "anyone", "firstly"),
		"ANY 3 (s1, s1)":           list(true, 3, "s1", "s1"),
		"FIRST 1 (  s1\n,\ts2  ) ": list(false, 1, "s1", "s2"),
	} {
		if got, err := ParseStandbyNames(value); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", value, got, err, want)
		}
	}
	for _, value := range []string{
		"any", "ANY 1", "ANY (s1)", "ANY 1 s1", "ANY 1 ()", "ANY 1 (s1", "ANY 1 (s1,)", "ANY 1 (s1) s2", "ANY 0 (s1)",
		"0 (s1)", "s1 s2", "s1,", ",s1", "s1, any", "first", `"s1`, "s-1", "a.b", "(s1)", "1 (s1) x", "99999999999999999999 (s1)",
	} {
		if got, err := ParseStandbyNames(value); err == nil {
			t.Errorf("%q was read as %+v", value, got)
		} else if !strings.Contains(err.Error(), "ANY 1 (s1, s2)") {
			t.Errorf("%q: %v; want it said what to write", value, err)
		}
	}
}

func TestStandbyNames_Choose(t *testing.T) {
	for _, tt := range []struct {
		value, there, chosen string
		take                 int
	}{
		{"", "s1 s2", "", NobodyNeeded},
		{"ANY 1 (s1, s2)", "s3 s2 s1", "s2 s1", 1},
		{"ANY 2 (s1, s2)", "s2", "s2", 2}, // too few: nobody is released
		{"ANY 2 (*)", "x y z", "x y z", 2},
		{"FIRST 1 (s2, s1)", "s1 s2", "s2", 1},
		{"FIRST 1 (s2, s1)", "s1", "s1", 1},
		{"FIRST 2 (s3, s1, s2)", "s1 s2 s3 s4", "s3 s1", 2},
		{"S2, s1", "s1 s2", "s2", 1}, // without regard to case
		{"s1, *", "x s1 y", "s1", 1},
		{"FIRST 2 (s1, *)", "x s1", "x s1", 2},
		{"FIRST 2 (s1, *)", "x s1 y", "", CannotTell}, // x and y are equal
		{"*", "x y", "", CannotTell},
		{"*", "x", "x", 1},
		{"s1", "s1 s1", "", CannotTell},
	} {
		n, err := ParseStandbyNames(tt.value)
		if err != nil {
			t.Fatal(err)
		}
		there := strings.Fields(tt.there)
		chosen, take := n.Choose(there, nil)
		var names []string
		for _, i := range chosen {
			names = append(names, there[i])
		}
		if take != tt.take || take != CannotTell && !sameNames(names, strings.Fields(tt.chosen)) {
			t.Errorf("%s of %s: %q, %d; want %s, %d", tt.value, tt.there, names, take, tt.chosen, tt.take)
		}
	}
}

func sameNames(a, b []string) bool { return strings.Join(a, " ") == strings.Join(b, " ") }

func FuzzParseStandbyNames(f *testing.F) {
	for _, s := range []string{"ANY 1 (s1, s2)", `"a""b", *`, "2 (1,2)", "FIRST", "s1,", `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseStandbyNames(s)
		if err != nil {
			return
		}
		chosen, take := n.Choose([]string{"a", "B", "a"}, nil)
		if n.Count < 1 || take > 0 && take != n.Count || len(chosen) > 3 {
			t.Errorf("%q: %+v chooses %v, %d", s, n, chosen, take)
		}
	})
}
