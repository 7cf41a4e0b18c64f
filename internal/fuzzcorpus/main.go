// Command fuzzcorpus keeps what fuzzing has found: it copies inputs from the cache of Go's fuzzer
// into the folders testdata/fuzz, from which go test reads them.
//
//	make fuzz FUZZTIME=10m
//	go run ./internal/fuzzcorpus
//
// Of each target it keeps, from the smallest on, the inputs that run statements of the tested
// package which neither the seeds of the target nor the inputs before run, up to -bytes in all.
// Inputs that are in testdata/fuzz already stay.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	most := flag.Int("bytes", 32<<10, "largest size of the inputs of a target, in bytes")
	flag.Parse()
	if err := keepAll(*most, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzcorpus:", err)
		os.Exit(1)
	}
}

// keepAll keeps the inputs of the targets of packages; nil: of all.
func keepAll(most int, packages []string) error {
	cache, err := output("go", "env", "GOCACHE")
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	list, err := output("go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, packages...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(list) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(cache), "fuzz", filepath.FromSlash(path), "Fuzz*"))
		if len(found) == 0 {
			continue
		}
		program, err := compile(path)
		if err != nil {
			return err
		}
		for _, cached := range found {
			t := target{program, dir, filepath.Base(cached)}
			if err := t.keep(cached, most); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
		os.Remove(program)
	}
	return nil
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}

// compile returns the path of the tests of a package, which count the statements that run.
func compile(path string) (string, error) {
	f, err := os.CreateTemp("", "fuzzcorpus-*.test")
	if err != nil {
		return "", err
	}
	f.Close()
	_, err = output("go", "test", "-c", "-cover", "-o", f.Name(), path)
	return f.Name(), err
}

// A target is a fuzz target of the tests of the package in dir.
type target struct{ program, dir, name string }

// An input is a file of the corpus.
type input struct {
	name    string
	content []byte
}

func (t target) keep(cached string, most int) error {
	corpus := filepath.Join(t.dir, "testdata", "fuzz", t.name)
	if err := os.MkdirAll(corpus, 0o777); err != nil {
		return err
	}
	covered, err := t.run("(seed#.*|" + strings.Join(names(corpus), "|") + ")")
	if err != nil {
		return err
	}
	var inputs []input
	for _, name := range names(cached) {
		content, err := os.ReadFile(filepath.Join(cached, name))
		if err == nil && len(content) <= most {
			inputs = append(inputs, input{name, content})
		}
	}
	slices.SortFunc(inputs, func(a, b input) int { return len(a.content) - len(b.content) })
	kept := 0
	for _, in := range inputs {
		path := filepath.Join(corpus, in.name)
		if _, err := os.Stat(path); err == nil || len(in.content) > most {
			continue
		}
		if err := os.WriteFile(path, in.content, 0o666); err != nil {
			return err
		}
		runs, err := t.run(in.name)
		if err != nil {
			return fmt.Errorf("input %s: %w", in.name, err)
		}
		fresh := false
		for statement := range runs {
			fresh = fresh || !covered[statement]
			covered[statement] = true
		}
		if !fresh {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		kept, most = kept+1, most-len(in.content)
	}
	os.Remove(corpus) // if it is empty
	fmt.Printf("%s %s: %d of %d inputs\n", t.dir, t.name, kept, len(inputs))
	return nil
}

func names(dir string) (out []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// run runs the inputs of the corpus whose names match a pattern, and returns the statements of the
// package that ran; none if the target skips one of them.
func (t target) run(pattern string) (map[string]bool, error) {
	profile := t.program + ".cover"
	defer os.Remove(profile)
	c := exec.Command(t.program, "-test.v", "-test.run", "^"+t.name+"$/^"+pattern+"$", "-test.coverprofile", profile)
	c.Dir = t.dir
	out, err := c.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if bytes.Contains(out, []byte("--- SKIP")) { // such as one that is too short for a property
		return nil, nil
	}
	raw, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	runs := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		if statement, count, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasSuffix(count, " 0") {
			runs[statement] = true
		}
	}
	return runs, nil
}
