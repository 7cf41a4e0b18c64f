package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/internal/report/terminal"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/turbojpeg"
)

func runCommand(engine *engineFlags) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run STUDY",
		Short: "Run a study",
		Long: `Runs a study and writes the run folder: a record for each finished cell, scores.csv, scores.parquet
and report.html. Cells that the folder already has are not computed again, so a stopped run resumes,
and an extended study computes only its new cells.`,
		Example: `  noether run study.yaml -o runs/one
  noether run study.yaml --dry-run
  noether run study.yaml --var DATA=/data/cifar10 -o runs/one
  noether run study.yaml -o runs/one --shard 3/16      # then: noether merge runs/one`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0], engine) },
	}
	f.add(c)
	return c
}

type runFlags struct {
	out, shard, memory         string
	vars, only                 []string
	saveEvery                  time.Duration
	dryRun, complete, failFast bool
	strict                     bool
	replace                    bool
	print                      printFlags
	policy                     string
	verdict                    policyFlags
	python                     pythonFlags
	observe                    *observeFlags
}

func (r *runFlags) add(c *cobra.Command) {
	r.observe = addObserveFlags(c)
	f := c.Flags()
	f.StringVarP(&r.out, "out", "o", "", "run folder (default: runs/NAME)")
	f.StringArrayVar(&r.vars, "var", nil, "NAME=VALUE for ${NAME} in the study; a path is relative to the working directory; may be repeated")
	f.BoolVar(&r.dryRun, "dry-run", false, "print the remaining work and its estimated cost, without running it")
	f.StringVar(&r.shard, "shard", "", "run one shard of the samples, such as 3/16")
	f.StringArrayVar(&r.only, "only", nil, "run only the cells of this model, and write scores with noether merge; may be repeated")
	f.BoolVar(&r.complete, "complete", false, "with --shard: finish the cells whose other shards are already in the folder")
	f.StringVar(&r.memory, "memory", "", "memory for the running sums of measures, such as 512MiB")
	f.DurationVar(&r.saveEvery, "save-every", time.Minute, "smallest time between saves of unfinished work; saving takes at most a twentieth of the time")
	f.BoolVar(&r.failFast, "fail-fast", false, "stop at the first failure of a cell, model or data set, instead of continuing with the others")
	f.BoolVar(&r.strict, "strict", false, "fail if a sample cannot be read, instead of leaving it out")
	f.BoolVar(&r.replace, "replace", false, "if the folder holds the run of another study, remove that run")
	f.StringVar(&r.policy, "policy", "", "judge the models by this policy file when the run is complete, see noether policy: exit code 3 if one fails, 4 if there are not enough data")
	r.verdict.add(f)
	r.python.add(f)
	r.print.add(f)
}

func (r *runFlags) run(c *cobra.Command, path string, engine *engineFlags) error {
	shard, err := r.parseShard(c)
	if err != nil {
		return err
	}
	var p *policy.Policy
	switch {
	case r.policy == "" && (r.verdict.junit != "" || r.verdict.sarif != ""):
		return usagef(c, "--junit and --sarif write the verdict of --policy: give one")
	case r.policy != "" && (r.shard != "" || r.only != nil || r.dryRun || r.print.json):
		return usagef(c, "--policy judges a whole run, in text: run noether policy RUN %s afterwards", r.policy)
	case r.policy != "":
		if p, err = policy.Read(r.policy); err != nil {
			return err
		}
	}
	s, err := loadStudy(c, path, r.vars, r.memory)
	if err != nil {
		return r.observe.logged(err)
	}
	if p != nil {
		if err := p.Check(policyNames(s)); err != nil {
			return r.observe.logged(fmt.Errorf("%s: %w", r.policy, err))
		}
	}
	stopPython, err := r.python.start(c.Context(), s)
	if err != nil {
		return r.observe.logged(err)
	}
	defer stopPython()
	machine.BoundGarbage(int64(s.Memory))
	o, err := engine.open()
	if err != nil {
		return r.observe.logged(err)
	}
	o.Free, o.Replace = machine.FreeMemory(), r.replace
	o.Shard, o.Only, o.Complete, o.SaveInterval, o.FailFast, o.Strict = shard, r.only, r.complete, r.saveEvery, r.failFast, r.strict
	out := cmp.Or(r.out, defaultFolder(s.Name))
	if r.dryRun {
		return dryRun(c.Context(), s, out, o, r.print.json)
	}
	stop, err := r.observe.start(c, &o)
	if err != nil {
		return err
	}
	err = stop(runStudy(c.Context(), s, out, o, r.print))
	if turbojpeg.Missed() {
		note("JPEG images were decoded in plain Go, at less than half the speed: " + turbojpeg.Hint())
	}
	if p == nil || err != nil {
		return err
	}
	return judgeRun(out, r.policy, p, &r.verdict)
}

// parseShard checks the flags and returns the shard that --shard asks for.
func (r *runFlags) parseShard(c *cobra.Command) (study.Shard, error) {
	switch {
	case r.saveEvery < 0:
		return study.Shard{}, usagef(c, "--save-every is %v; it must be a time such as 1m", r.saveEvery)
	case r.complete && r.shard == "":
		return study.Shard{}, usagef(c, "--complete needs --shard")
	case r.shard == "":
		return study.Shard{}, nil
	}
	shard, err := study.ParseShard(r.shard)
	if err != nil {
		return study.Shard{}, &usageError{c, err}
	}
	return shard, nil
}

// defaultFolder returns runs/NAME, without leading dots and characters that a file name cannot
// have.
func defaultFolder(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == 0 {
			return '-'
		}
		return r
	}, name)
	return filepath.Join("runs", cmp.Or(strings.TrimLeft(name, "."), "study"))
}

func variables(c *cobra.Command, vars []string) (map[string]string, error) {
	values := map[string]string{}
	for _, v := range vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, usagef(c, "--var is %q: it must be NAME=VALUE", v)
		}
		// A path on the command line is relative to the working directory, not to the study file.
		if abs, err := filepath.Abs(value); err == nil && looksLikePath(value) && exists(value) {
			value = abs
		}
		values[name] = value
	}
	return values, nil
}

// loadStudy reads a study file. memory is the value of --memory, "" for the study's own bound.
func loadStudy(c *cobra.Command, path string, vars []string, memory string) (*study.Study, error) {
	values, err := variables(c, vars)
	if err != nil {
		return nil, err
	}
	s, err := study.Load(path, values)
	if err == nil && memory != "" {
		bytes, err := spec.ParseSize(memory)
		if err != nil {
			return nil, &usageError{c, err}
		}
		s.SetMemory(bytes)
	}
	return s, err
}

// looksLikePath reports whether a value starts with a dot or has a separator.
func looksLikePath(value string) bool {
	return strings.HasPrefix(value, ".") || strings.ContainsRune(value, filepath.Separator)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// runStudy prints the scores of a run; for a shard, or with --only, what to do next. study.Failures
// do not stop it.
func runStudy(ctx context.Context, s *study.Study, out string, o study.Options, p printFlags) error {
	done := showOrLogProgress(&o)
	result, err := study.Run(ctx, s, out, o)
	done()
	var failures *study.Failures
	if err != nil && !errors.As(err, &failures) {
		return err
	}
	if o.Only != nil || !o.Shard.Whole() {
		if failures != nil {
			width, colour := terminalSize(os.Stderr)
			if err := terminal.WriteFailures(os.Stderr, failures.Failed, terminal.Options{Width: width, Colour: colour}); err != nil {
				return err
			}
		}
		what := "the requested part"
		if !o.Shard.Whole() {
			what = fmt.Sprintf("shard %d/%d", o.Shard.Index, o.Shard.Count)
		}
		note(fmt.Sprintf("%s is in %s; when all parts are there, run: noether merge %[2]s", what, out))
		return err
	}
	return errors.Join(showResult(result, out, p), err)
}

type printFlags struct{ json, all bool }

func (p *printFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&p.json, "json", false, "print JSON")
	f.BoolVar(&p.all, "all", false, "print tables of single statistics too, with the best and the worst layer")
}

// terminalWidth returns the width of a file's terminal; 0 if the file is no terminal.
func terminalWidth(f *os.File) int {
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _ := terminalSize(f)
	return width
}

// terminalSize returns 100 columns without colours for a file that is no terminal.
func terminalSize(f *os.File) (width int, colour bool) {
	if !term.IsTerminal(int(f.Fd())) {
		return 100, false
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w < 40 {
		w = 80
	}
	return w, os.Getenv("NO_COLOR") == ""
}
