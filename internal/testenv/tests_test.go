package testenv

import "testing"

func TestIndex(t *testing.T) {
	x := Tests(t)
	for name, want := range map[string]bool{
		"internal/testenv.TestIndex":                       true,
		"internal/testenv.TestIndex/a string of this test": true,
		"internal/testenv.TestIndex/" + "no such" + "one":  false,
		"internal/testenv.TestIndexes":                     false,
		"testenv.TestIndex":                                false,
		"wire/mongo.FuzzSession":                           true,
		"TestIndex":                                        false,
		"internal/testenv.Tests":                           false,
	} {
		if got := x.Has(name); got != want {
			t.Errorf("has %q: %v, want %v", name, got, want)
		}
	}
	if !x.HasAnywhere("TestIndex") || x.HasAnywhere("Index") || x.HasAnywhere("TestInde") {
		t.Error("a name is found in parts, or not at all")
	}
	_ = "a string of this test"
}
