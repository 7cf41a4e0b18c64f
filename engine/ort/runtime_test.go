package ort

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	path, tried, err := Find("")
	if err != nil {
		t.Fatalf("%v (tried %q)", err, tried)
	}
	rt, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(rt.Version(), "1.") || !slices.Contains(rt.Providers(), "CPUExecutionProvider") || !slices.Contains(rt.Devices(), Device{Name: cpu}) {
		t.Errorf("version %q, providers %q, devices %q", rt.Version(), rt.Providers(), rt.Devices())
	}
	again, err := Load(path)
	if err != nil || again != rt {
		t.Errorf("loading the same path again: %v, %v", again, err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "other.so")); err == nil || !strings.Contains(err.Error(), "already loaded") {
		t.Errorf("loading another path: %v", err)
	}
}

// TestNoTelemetry checks that loading the ONNX Runtime library switches off its telemetry.
// Microsoft's builds from 1.29 on write a file mat-debug-PID.log when it starts.
func TestNoTelemetry(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the path of the file is known for Linux alone")
	}
	path, _, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err != nil {
		t.Fatal(err)
	}
	if !telemetryDisabled() { // in continuous integration the library does not start it anyway
		t.Errorf("%s is %q after loading, want 1", telemetryVariable, os.Getenv(telemetryVariable))
	}
	log := filepath.Join("/tmp", fmt.Sprintf("mat-debug-%d.log", os.Getpid()))
	if _, err := os.Stat(log); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there (%v): the telemetry of ONNX Runtime has started", log, err)
	}
}

func TestInspectLibraryErrors(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), libraryNames()[0])
	if err := os.WriteFile(text, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	// The values are text wanted in the error. "": any error will do.
	paths := map[string]string{text: "", filepath.Join(t.TempDir(), "none"): ""}
	if runtime.GOOS == "linux" {
		paths["libc.so.6"] = "not ONNX Runtime"
	}
	for path, want := range paths {
		_, _, _, err := inspectLibrary(path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", path, err, want)
		}
	}
}
