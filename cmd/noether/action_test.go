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

// TestAction runs the step of .github/actions/noether/action.yml, the GitHub action, that compares
// two runs. As GitHub's runner does, it writes the script of the step into a file and sets the
// environment variables of the step to the values of the inputs.
func TestAction(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../.github/actions/noether/action.yml")
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
	// The study measures a small model, which hubFolder writes, on generated images under a
	// rotation.
	study := write(t, dir, "study.yaml", []byte("name: compare\ndata: [{name: shapes, shapes: {n: 60, size: 16}}]\nmodels: [{name: m, onnx: '"+
		filepath.Join(hubFolder(t, dir), "onnx", "model.onnx")+"', layers: [penultimate]}]\ntransforms: [{name: quarter, rotate: {values: [90]}}]\nmeasures: [accuracy, distance]\n"))
	for _, run := range []string{"a b", "b"} {
		if out, err := exec.CommandContext(t.Context(), program, "run", study, "-o", filepath.Join(dir, run)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}

	step := action.Runs.Steps[len(action.Runs.Steps)-1]
	script := write(t, dir, "step.sh", []byte(step.Run))
	inputExpression := regexp.MustCompile(`^\$\{\{ inputs\.([a-z-]+) \}\}$`)
	// compare runs the step and returns its exit code and the job summary that it writes.
	compare := func(inputs map[string]string) (code int, summary string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "summary.md")
		command := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		command.Dir = dir
		command.Env = append(os.Environ(), "GITHUB_STEP_SUMMARY="+file)
		for name, value := range step.Env {
			match := inputExpression.FindStringSubmatch(value)
			if match == nil {
				t.Fatalf("the variable %s is %q, want the expression of one input", name, value)
			}
			text, given := inputs[match[1]]
			if input, ok := action.Inputs[match[1]]; !ok {
				t.Fatalf("the action has no input %s", match[1])
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
	// Both runs have equal scores, so every difference is 0 and within chance. A condition holds
	// for differences within chance only if it ends in an exclamation mark. The command exits with
	// 1 if a condition holds, and with 2 if one is invalid. accuracy.clean is the accuracy on
	// images that are not transformed; a condition is on its difference between the runs.
	for _, c := range []struct {
		failIf string
		code   int
		wants  []string
	}{
		{"", 0, []string{"### Noether: passed\n\n    "}},
		{"accuracy.clean < -0.02\ndistance.cosine > 0.1\n", 0, []string{"passed"}},
		{"accuracy.clean < -0.02\naccuracy.clean > -1!\n", 1, []string{"### Noether: failed", "    noether: ", "accuracy.clean > -1!"}},
		{"accuracy.clean > $(touch executed)\n", 2, []string{"failed", "--fail-if"}},
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
	if _, err := os.Stat(filepath.Join(dir, "executed")); err == nil {
		t.Error("a shell command in a condition was executed")
	}
}
