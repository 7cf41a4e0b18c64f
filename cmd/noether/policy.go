package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

func policyCommand() *cobra.Command {
	var f policyFlags
	var asJSON, inReport bool
	c := &cobra.Command{
		Use:   "policy RUN POLICY",
		Short: "Judge the models of a run for a stated use: pass, fail or not enough data",
		Long: `Judges the models of a run by a policy file, which states a use: transformations up to strengths,
the loss of accuracy that may be, and groups of samples for which it must hold too. Each model
passes, fails, or there are not enough data. Each claim is listed with its evidence and, if it is
not decided, the number of samples that would decide it.

The run's report begins with the verdict, unless it has that of another policy: --report replaces it.

Exit codes: 0 if all models pass, 3 if one fails, 4 if none fails and there are not enough data for
one.`,
		Example: "  noether policy runs/street policy.yaml\n" +
			"  noether policy runs/street policy.yaml --junit policy.xml --sarif policy.sarif",
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := policy.Read(args[1])
			if err != nil {
				return err
			}
			verdicts, err := judge(args[0], p)
			if err != nil {
				return err
			}
			if err := f.write(p, verdicts, args[1]); err != nil {
				return err
			}
			if err := keepVerdict(args[0], p, verdicts, inReport); err != nil {
				note(fmt.Sprintf("the report lacks the verdict: %v", err))
			}
			if err := show(asJSON, p.Summarise(verdicts), func() error { return printVerdicts(stdout, p, verdicts, f.all) }); err != nil {
				return err
			}
			return verdictError(p, verdicts)
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVar(&f.all, "all", false, "list also the claims that pass, of models that fail or are not decided")
	c.Flags().BoolVar(&inReport, "report", false, "put the verdict into the report in place of that of another policy")
	addJSON(c, &asJSON)
	return c
}

type policyFlags struct {
	junit, sarif string
	all          bool
}

func (f *policyFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.junit, "junit", "", "also write the verdict as JUnit's XML to this file")
	flags.StringVar(&f.sarif, "sarif", "", "also write the verdict as SARIF to this file")
}

// write writes the files that the flags name. file is the policy's.
func (f *policyFlags) write(p *policy.Policy, verdicts []policy.Verdict, file string) error {
	for path, write := range map[string]func(io.Writer) error{
		f.junit: func(w io.Writer) error { return p.WriteJUnit(w, verdicts) },
		f.sarif: func(w io.Writer) error { return p.WriteSARIF(w, verdicts, filepath.ToSlash(file), version()) },
	} {
		if path == "" {
			continue
		}
		if err := atomicfile.WriteFunc(path, write); err != nil {
			return fmt.Errorf("writing the verdict: %w", err)
		}
	}
	return nil
}

// policyNames returns what a policy may name in a study.
func policyNames(s *study.Study) policy.Names {
	n := policy.Names{Properties: s.By, Measures: []measure.Descriptor{}}
	for _, d := range s.Data {
		n.Data = append(n.Data, d.Name)
	}
	for _, m := range s.Models {
		n.Models = append(n.Models, m.Name)
	}
	for _, t := range s.Transforms {
		n.Transforms = append(n.Transforms, t.Name)
	}
	for _, m := range s.Measures {
		n.Measures = append(n.Measures, m.Descriptor())
	}
	return n
}

// judge judges the models of a run folder.
func judge(dir string, p *policy.Policy) ([]policy.Verdict, error) {
	run, err := study.ReadResult(dir)
	if err != nil {
		return nil, err
	}
	_, zero := ownTolerances(run)
	e := policy.Evidence{Rows: run.Rows, Record: run.Record, Neutral: zero}
	e.Cells = func() ([]scores.Cell, error) {
		cells, _, err := study.ReadCells(dir)
		return cells, err
	}
	s, err := catalog.Parse("study.yaml", []byte(run.Record.Resolved), nil)
	if err != nil {
		return nil, fmt.Errorf("the study of %s: %w", dir, err)
	}
	e.Transforms = policyNames(s).Transforms
	path := filepath.Join(dir, "samples.parquet")
	err = parquetfile.ReadFile(path, parquetfile.ReadSamples, func(r scores.SampleRow) {
		if r.Layer == "" && r.OtherModel == "" {
			e.Samples = append(e.Samples, r)
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	groups, err := os.Open(filepath.Join(dir, "groups.csv"))
	if err == nil {
		defer groups.Close()
		e.Groupings, err = scores.ReadGroupings(groups)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("groups.csv of %s: %w", dir, err)
	}
	return p.Judge(e)
}

// undecidedExit is the exit code if no model fails a policy, and there are not enough data for one.
const undecidedExit = 4

// An undecidedError says that there are not enough data for a policy.
type undecidedError struct{ error }

// verdictError returns nil if all models pass.
func verdictError(p *policy.Policy, verdicts []policy.Verdict) error {
	for _, state := range []policy.State{policy.Fail, policy.Undecided} {
		var models []string
		for _, v := range verdicts {
			if v.State == state {
				models = append(models, v.Model)
			}
		}
		if len(models) == 0 {
			continue
		}
		err := fmt.Errorf("%s: %s: %s", p.Use, state, strings.Join(models, ", "))
		if state == policy.Fail {
			return &gateError{err}
		}
		return &undecidedError{err}
	}
	return nil
}

func printVerdicts(w io.Writer, p *policy.Policy, verdicts []policy.Verdict, all bool) error {
	fmt.Fprintf(w, "%s\n", p.Use)
	for i, m := range p.Summarise(verdicts).Models {
		v := verdicts[i]
		fmt.Fprintf(w, "\n%s: %s. %s\n", m.Model, strings.ToUpper(string(m.State)), m.Counts())
		t := newTable(w)
		t.printf("  verdict\tclaim\twhere\tevidence\n")
		passed := 0
		for _, c := range v.Claims {
			if c.State == policy.Pass && v.State != policy.Pass && !all {
				passed++
				continue
			}
			t.printf("  %s\t%s\t%s\t%s\n", string(c.State), c.Text, c.Where(), c.Evidence())
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if passed > 0 {
			fmt.Fprintf(w, "  %d more %s: --all lists them\n", passed, map[bool]string{true: "holds", false: "hold"}[passed == 1])
		}
	}
	_, err := fmt.Fprintln(w, "\nValues have 95 % intervals. A model passes if every interval keeps to its limit, and fails if one does not after correction for the number of claims.")
	return err
}

// keepVerdict writes the verdict to the run folder, and its report with it. That of another policy on
// the same scores is only replaced if asked.
func keepVerdict(dir string, p *policy.Policy, verdicts []policy.Verdict, replace bool) error {
	s := p.Summarise(verdicts)
	sum, err := scores.SumFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return err
	}
	s.Run = sum.CRC32C
	path := filepath.Join(dir, policy.SummaryFile)
	if data, err := os.ReadFile(path); err == nil {
		before, err := policy.ParseSummary(data)
		if err == nil && before.Run == s.Run && before.Name() != s.Name() {
			if !replace {
				note(fmt.Sprintf("the report keeps the verdict of another policy (%s); --report replaces it", before.Name()))
				return nil
			}
			note(fmt.Sprintf("the report has this verdict in place of that of another policy (%s)", before.Name()))
		}
	}
	err = atomicfile.WriteFunc(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(s)
	})
	if err != nil {
		return err
	}
	result, err := study.ReadResult(dir)
	if err != nil {
		return err
	}
	return writePage(result, dir, readAttached(dir, nil))
}

// judgeRun prints the verdict on a run that has just finished.
func judgeRun(dir, file string, p *policy.Policy, f *policyFlags) error {
	verdicts, err := judge(dir, p)
	if err == nil {
		err = errors.Join(f.write(p, verdicts, file), keepVerdict(dir, p, verdicts, true))
	}
	if err != nil {
		return err
	}
	if err := printVerdicts(stdout, p, verdicts, false); err != nil {
		return err
	}
	return verdictError(p, verdicts)
}
