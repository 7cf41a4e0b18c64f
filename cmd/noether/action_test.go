package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestAction runs the step of action.yml that compares, as GitHub's runner does: the script in a file,
// the values of its expressions in the environment.
func TestAction(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				Name, Run string
				Env       map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &action); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := buildProgram(t)
	study := write(t, dir, "study.yaml", []byte("name: gate\ndata: [{name: shapes, shapes: {n: 60, size: 16}}]\nmodels: [{name: m, onnx: '"+
		filepath.Join(hubFolder(t, dir), "onnx", "model.onnx")+"', layers: [penultimate]}]\ntransforms: [{name: quarter, rotate: {values: [90]}}]\nmeasures: [accuracy, distance]\n"))
	for _, run := range []string{"a b", "b"} {
		if out, err := exec.CommandContext(t.Context(), program, "run", study, "-o", filepath.Join(dir, run)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}

	step := action.Runs.Steps[len(action.Runs.Steps)-1]
	script := write(t, dir, "step.sh", []byte(step.Run))
	expression := regexp.MustCompile(`^\$\{\{ inputs\.([a-z-]+) \}\}$`)
	compare := func(inputs map[string]string) (code int, summary string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "summary.md")
		command := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		command.Dir = dir
		command.Env = append(os.Environ(), "GITHUB_STEP_SUMMARY="+file)
		for name, value := range step.Env {
			match := expression.FindStringSubmatch(value)
			if match == nil {
				t.Fatalf("%s is not an input alone: %s", name, value)
			}
			text, given := inputs[match[1]]
			if input, ok := action.Inputs[match[1]]; !ok {
				t.Fatalf("no input %s", match[1])
			} else if !given {
				text = input.Default
			}
			command.Env = append(command.Env, name+"="+text)
		}
		_, err := command.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return command.ProcessState.ExitCode(), string(text)
	}
	for _, c := range []struct {
		failIf string
		code   int
		wants  []string
	}{
		{"", 0, []string{"### Noether: passed\n\n    "}},
		{"accuracy.clean < -0.02\ndistance.cosine > 0.1\n", 0, []string{"passed"}},
		{"accuracy.clean < -0.02\naccuracy.clean > -1!\n", 1, []string{"### Noether: failed", "    noether: ", "accuracy.clean > -1!"}},
		{"accuracy.clean > $(touch intruder)\n", 2, []string{"failed", "--fail-if"}},
	} {
		code, summary := compare(map[string]string{"approved": "a b", "candidate": "b", "noether": program, "fail-if": c.failIf})
		if code != c.code {
			t.Errorf("%q: exit %d, want %d:\n%s", c.failIf, code, c.code, summary)
		}
		for _, want := range c.wants {
			if !strings.Contains(summary, want) {
				t.Errorf("%q: no %q in\n%s", c.failIf, want, summary)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "intruder")); err == nil {
		t.Error("a condition was run as a command")
	}
}
