package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVaryCommand checks that vary writes a model whose weights are pruned, noisy and quantised,
// and its errors. brokenFolder has a valid model, good.onnx, and its first half, cut.onnx. call
// returns the exit code and the message.
func TestVaryCommand(t *testing.T) {
	dir := brokenFolder(t)
	good, out := filepath.Join(dir, "good.onnx"), filepath.Join(dir, "varied.onnx")
	if code, message := call(t, "vary", good, "--prune", "0.5", "--noise", "0.1", "--bits", "4", "-o", out); code != 0 {
		t.Fatal(message)
	}
	if code, message := call(t, "inspect", out); code != 0 {
		t.Error(message)
	}
	before, _ := os.ReadFile(good)
	after, _ := os.ReadFile(out)
	if len(after) == 0 || string(before) == string(after) {
		t.Error("the model is unchanged")
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{good, "--prune", "2", "-o", out}, 2, "0 to 1"},
		{[]string{good, "--prune", "0.5"}, 2, "-o"},
		{[]string{good, "-o", out}, 2, "no change is selected"},
		{[]string{good, "--bits", "4", "-o", good}, 1, "is the model itself"},
		{[]string{filepath.Join(dir, "cut.onnx"), "--bits", "4", "-o", out}, 1, "truncated"},
	} {
		if code, message := call(t, append([]string{"vary"}, c.args...)...); code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args, code, message, c.code, c.want)
		}
	}
}
