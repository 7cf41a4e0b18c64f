//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// TestModelsThatCrashTheEngine checks that a run with models on which the engine crashes, one when
// the model is opened and one on the data, has the scores of the other model, one line for each of
// them, and exit code 1. A command for one such model fails in one line.
func TestModelsThatCrashTheEngine(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("an integer division that overflows traps on amd64 only")
	}
	dir := t.TempDir()
	program := buildProgram(t)
	testmodel.Write(t, dir, "good", testmodel.Options{})
	opening := testmodel.WriteTrapping(t, dir, "opening", false)
	testmodel.WriteTrapping(t, dir, "dark", true)
	// Twelve grey images, of which one is dark, in the middle of those that are read.
	for i := range 12 {
		img := image.NewGray(image.Rect(0, 0, 16, 16))
		for p := range img.Pix {
			img.Pix[p] = color.Gray{Y: uint8(100 + 10*i + p%16)}.Y
			if i == 7 {
				img.Pix[p] = uint8(p % 32)
			}
		}
		var coded bytes.Buffer
		if err := png.Encode(&coded, img); err != nil {
			t.Fatal(err)
		}
		write(t, dir, fmt.Sprintf("photo%02d.png", i), coded.Bytes())
	}
	study := func(models ...string) string {
		text := "name: crash\ndata: [{name: photos, images: .}]\nbatch: 2\ntransforms: [{rotate: {values: [90]}}]\nmeasures: [distance]\nmodels:\n"
		for _, m := range models {
			text += fmt.Sprintf("  - {name: %s, onnx: %[1]s.onnx, layers: [output]}\n", m)
		}
		return write(t, dir, strings.Join(models, "-")+".yaml", []byte(text))
	}
	run := func(study, out string) (stderr string, code int) {
		cmd := exec.CommandContext(t.Context(), program, "run", study, "-o", filepath.Join(dir, out))
		var messages bytes.Buffer
		cmd.Stderr = &messages
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return messages.String(), cmd.ProcessState.ExitCode()
	}
	if messages, code := run(study("good"), "alone"); code != 0 {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	messages, code := run(study("dark", "opening", "good"), "all")
	if code != 1 || strings.Contains(messages, "goroutine") || strings.Contains(messages, "PC=") {
		t.Errorf("exit code %d, want 1 and no stacks: %s", code, messages)
	}
	want := readScores(t, filepath.Join(dir, "alone"))
	if got := readScores(t, filepath.Join(dir, "all")); !slices.EqualFunc(got, want, func(a, b scores.Row) bool {
		return a.Model == b.Model && a.Statistic == b.Statistic && a.Value == b.Value
	}) {
		t.Errorf("the scores beside models that crash are %v, want %v", got, want)
	}
	record, err := scores.ReadRecord(filepath.Join(dir, "all", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]string{}
	for _, f := range record.Failed {
		failed[f.Model] = f.Error
	}
	for _, m := range []string{"opening", "dark"} {
		if !strings.Contains(failed[m], m+".onnx: the engine crashed on it (SIGFPE") {
			t.Errorf("the failure of %s is %q", m, failed[m])
		}
	}
	if len(failed) != 2 {
		t.Errorf("failures %v, want two", failed)
	}

	out, err := exec.CommandContext(t.Context(), program, "init", opening, dir).CombinedOutput()
	if err == nil || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "the engine crashed on it (SIGFPE") {
		t.Errorf("init on a model that crashes: %v: %s", err, out)
	}
}

// TestKilledSupervisor checks that SIGKILL of the process that a shell has started ends the one
// that works.
func TestKilledSupervisor(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the processes of a process are listed on Linux only")
	}
	endless := testmodel.WriteEndless(t, t.TempDir(), "endless")
	cmd := exec.CommandContext(t.Context(), buildProgram(t), "inspect", endless, "--layers", "all")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	for deadline := time.Now().Add(10 * time.Second); child == 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
		for _, thread := range threads {
			raw, err := os.ReadFile(thread)
			if err == nil && len(raw) > 0 {
				_, _ = fmt.Sscan(string(raw), &child)
			}
		}
	}
	if child == 0 {
		t.Fatal("the program starts no process for its work")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(child, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)); err == nil && strings.Contains(string(state), ") Z ") {
			return // it has ended, and nobody has asked how
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d still works after its parent was killed", child)
		}
	}
}
