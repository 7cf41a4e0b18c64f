package browse

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestOpener checks which program opens files on a system (a GOOS) with the given environment; "":
// none, as there is no desktop.
func TestOpener(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		system string
		env    map[string]string
		want   string
	}{
		{"linux", nil, ""},
		{"linux", map[string]string{"DISPLAY": ":0"}, "xdg-open"},
		{"freebsd", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, "xdg-open"},
		{"darwin", nil, "open"},
		{"darwin", map[string]string{"SSH_CONNECTION": "10.0.0.1"}, ""},
		{"windows", nil, "rundll32"},
	} {
		if got, _ := opener(c.system, func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%s with %v: %q, want %q", c.system, c.env, got, c.want)
		}
	}
}

// TestOpen checks that the opener, here a script xdg-open that writes its first argument to a file,
// gets the whole path of the opened file as one argument.
func TestOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the opener of this system cannot be replaced")
	}
	dir := t.TempDir()
	called := filepath.Join(dir, "called")
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\nprintf %s \"$1\" > "+called+".tmp\nmv "+called+".tmp "+called+"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":0")
	file := filepath.Join(dir, "a report; rm -rf x.html")
	if err := Open(file); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(called)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); raw, err = os.ReadFile(called) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || string(raw) != file {
		t.Errorf("the opener was called with %q, %v", raw, err)
	}
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	if err := Open(file); !errors.Is(err, ErrNoDesktop) {
		t.Errorf("without a desktop: error %v, want ErrNoDesktop", err)
	}
}
