package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/report/terminal"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/scores"
)

// dryRun leaves out what the run folder out already holds.
func dryRun(ctx context.Context, s *study.Study, out string, o study.Options, asJSON bool) error {
	plan, err := study.NewPlan(ctx, s, o)
	if err != nil {
		return err
	}
	defer plan.Close()
	cost, err := study.Estimate(ctx, plan, out, o)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(cost)
	}
	if err := printCosts(cost); err != nil {
		return err
	}
	if hint := plan.MemoryHint(&o); hint != "" {
		fmt.Fprintln(stdout, hint)
	}
	if err := terminal.WriteFailures(os.Stdout, plan.Failed(), terminal.Options{}); err != nil {
		return err
	}
	if names := s.Searches(); len(names) > 0 {
		fmt.Fprintf(stdout, "values: auto of %s: this is the first round; up to %d follow, each with three values around each breaking point\n", strings.Join(names, ", "), spec.SearchRounds-1)
	}
	for _, line := range skipLines(plan.Skips) {
		fmt.Fprintln(stdout, "skipped:", line)
	}
	return nil
}

func printCosts(costs []study.Cost) error {
	t := newTable(stdout)
	fmt.Fprintln(t, "model\tdata\tsamples\tlayers\tcells\tpasses\tforward\tmemory\tpeak\topen\tread\tengine\tmeasure\tscore\tsave\ttotal")
	var sum study.Cost
	for _, c := range costs {
		t.printf("%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s", c.Model, c.Data, c.Samples, c.Layers, c.Cells, c.Passes, c.Forwards, mebibytes(c.Bytes), mebibytes(c.Peak))
		for _, d := range []time.Duration{c.Open, c.Read, c.Engine, c.Measure, c.Score, c.Save, c.Total} {
			t.printf("\t%s", d.Round(100*time.Millisecond))
		}
		fmt.Fprintln(t)
		sum.Forwards += c.Forwards
		sum.Cells += c.Cells
		sum.Passes += c.Passes
		sum.Total += c.Total
		sum.Peak = max(sum.Peak, c.Peak)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\ncells: %d; passes: %d; samples through the engine: %d; about %s on this machine when idle, with up to %s of memory\n",
		sum.Cells, sum.Passes, sum.Forwards, sum.Total.Round(time.Second), mebibytes(sum.Peak))
	return nil
}

// skipLines joins the layers of a model that are skipped for the same reason into one line.
func skipLines(skips []scores.Skip) []string {
	layers := map[scores.Skip][]string{}
	var order []scores.Skip
	for _, k := range skips {
		layer := k.Layer
		k.Layer = ""
		if layers[k] == nil {
			order = append(order, k)
		}
		layers[k] = append(layers[k], layer)
	}
	const named = 3
	var out []string
	for _, k := range order {
		where, names := k.Model, layers[k]
		switch {
		case len(names) > named:
			where += fmt.Sprintf(" at %d layers (%s, ...)", len(names), strings.Join(names[:named], ", "))
		case names[0] != "":
			where += " at " + strings.Join(names, ", ")
		}
		out = append(out, fmt.Sprintf("%s of %s on %s: %s", k.Measure, where, k.Data, k.Why))
	}
	return out
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
