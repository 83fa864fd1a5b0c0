package lab

import "testing"

func TestNewer_ComparesByNumber(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"15.20", "15.4", true},
		{"15.4", "15.20", false},
		{"15.20", "9.6", true},
		{"18", "17.9", true},
		{"15.4", "15.4", false},
		{"9.6", "", true},
	} {
		if got := newer(tt.a, tt.b); got != tt.want {
			t.Errorf("newer(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}
