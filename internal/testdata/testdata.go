// Package testdata finds the real data and trained models that some tests use, and says what to do
// without the libraries that some tests need. Draws is the size of simulations.
package testdata

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Env is the environment variable with the path of the folder of test data.
const Env = "NOETHER_TESTDATA"

// Path returns the path of a file or folder of the test data. If the variable is not set, the test
// is skipped. If it is set and the file is missing, the test fails.
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

// NeedLibrary skips a test if err, which a search for a library has returned, is not nil; hint says
// how to install the library. Where the variable is set, everything that tests need is installed, so
// the test fails.
func NeedLibrary(t testing.TB, library, hint string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv(Env) != "":
		t.Fatalf("%s is not installed: %v", library, err)
	default:
		t.Skipf("%s is not installed (%s): %v", library, hint, err)
	}
}

// Draws returns the number of draws of a simulation: quick, or what the variable NOETHER_DRAWS
// says.
func Draws(quick int) int {
	if n, err := strconv.Atoi(os.Getenv("NOETHER_DRAWS")); err == nil && n > 0 {
		return n
	}
	return quick
}
