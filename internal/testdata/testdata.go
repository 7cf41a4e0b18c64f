// Package testdata finds the real data and trained models that some tests use.
package testdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Env names the variable that holds the folder of test data.
const Env = "NOETHER_TESTDATA"

// Path returns the path of a file or folder of the test data. Where the variable is not set the test is skipped and
// says so; where it is set and the file is missing, the test fails.
func Path(t testing.TB, elem ...string) string {
	t.Helper()
	dir := os.Getenv(Env)
	if dir == "" {
		t.Skipf("%s is not set: no real data to test on", Env)
	}
	path := filepath.Join(append([]string{dir}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is set, but %v", Env, err)
	}
	return path
}
