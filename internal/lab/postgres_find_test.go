package lab

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wirewait/wirewait/internal/testenv"
)

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

// Links to the two server programs alone lead to the others.
func TestFindPostgres_FollowsLinks(t *testing.T) {
	found, err := findPostgres(t.Context(), "")
	if errors.Is(err, ErrNoPostgres) {
		testenv.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	links := t.TempDir()
	for _, program := range []string{"initdb", "postgres"} {
		if err := os.Symlink(found.path(program), filepath.Join(links, program)); err != nil {
			t.Fatal(err)
		}
	}
	linked, err := findPostgres(t.Context(), links)
	if err != nil || linked != found {
		t.Errorf("links to %+v lead to %+v, %v", found, linked, err)
	}
}
