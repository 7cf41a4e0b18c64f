package dynlib

import (
	"runtime"
	"strings"
	"testing"
)

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
	for _, c := range []struct{ name, value, function, path, problem string }{
		{"second of two", "", "abs", library, ""},
		{"lacks a function", "", "no_such_function", "", "no-such-library"},
		{"named by the environment", library, "abs", library, ""},
		{"named, lacks a function", library, "no_such_function", "", library + " is not the test library: it lacks no_such_function"},
		{"named, missing", "another-library", "abs", "", "another-library"},
		{"none", "none", "abs", "", env + " is none"},
	} {
		t.Setenv(env, c.value)
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
