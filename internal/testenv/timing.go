package testenv

import "testing"

// Timely skips a test under the race detector whose outcome hangs on which of two
// processes is faster: what members of a cluster acknowledge within milliseconds
// of each other. The code that it runs is run by other tests there.
func Timely(t *testing.T) {
	t.Helper()
	if Race {
		t.Skip("it compares moments of several servers, which the race detector's slowness blurs")
	}
}
