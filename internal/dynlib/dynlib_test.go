package dynlib

import (
	"runtime"
	"strings"
	"testing"
)

// TestFind looks for a function in two libraries, of which the first does not exist, or in the one
// that the environment variable env names.
func TestFind(t *testing.T) {
	const env = "NOETHER_TEST_LIBRARY"
	library := "libc.so.6"
	switch runtime.GOOS {
	case "windows":
		library = "msvcrt.dll"
	case "darwin":
		library = "libSystem.B.dylib"
	}
	names := []string{"no-such-library", library}
	var abs func(int32) int32
	var absent func()
	for _, c := range []struct {
		name, envValue, function string
		path, problem            string // what Find returns: the library, and a part of the error
	}{
		{"second library", "", "abs", library, ""},
		{"lacks a function", "", "no_such_function", "", "no-such-library"},
		{"named by the environment", library, "abs", library, ""},
		{"named, lacks a function", library, "no_such_function", "", library + " is not the test library: it lacks no_such_function"},
		{"named, missing", "another-library", "abs", "", "another-library"},
		{"no library to try", "none", "abs", "", env + " is none"},
	} {
		t.Setenv(env, c.envValue)
		functions := map[string]any{"abs": &abs}
		if c.function != "abs" {
			functions = map[string]any{c.function: &absent}
		}
		path, err := Find("the test library", env, names, functions)
		if path != c.path || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %q, %v; want %q, %q", c.name, path, err, c.path, c.problem)
		}
	}
	if got := abs(-3); got != 3 {
		t.Errorf("abs(-3) = %d, want 3", got)
	}
}
