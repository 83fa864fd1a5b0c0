package rig

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// UpdateDocs: the pages in docs that say what ran are to be written, and not
// held against what did.
var UpdateDocs = flag.Bool("update-docs", false, "write the page in docs from this run")

// WriteResults writes what ran as JSON, to a file in WIREWAIT_MATRIX_OUT or else
// in a directory of this user's below the temporary one.
func WriteResults(file string, results any) error {
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	dir := os.Getenv("WIREWAIT_MATRIX_OUT")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("wirewait-matrix-%d", os.Getuid()))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), append(data, '\n'), 0o600)
}
