package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/noether-ml/noether/report/terminal"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study"
)

// dryRun prints the work of a study and its cost.
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
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "model\tdata\tsamples\tlayers\tcells\tpasses\tforward\tmemory\tengine time")
	var forwards int64
	var total time.Duration
	cells := 0
	for _, c := range cost {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", c.Model, c.Data, c.Samples, c.Layers, c.Cells, c.Passes, c.Forwards, mebibytes(c.Bytes), c.Engine.Round(100*time.Millisecond))
		forwards += c.Forwards
		total += c.Engine
		cells += c.Cells
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Printf("\n%d cells; %d samples through the engine, about %s at the speed of one batch tried here, and what the measures take on top\n", cells, forwards, total.Round(time.Second))
	if err := terminal.WriteFailures(os.Stdout, plan.Failed(), terminal.Options{}); err != nil {
		return err
	}
	for _, line := range skipLines(plan.Skips) {
		fmt.Println("skipped:", line)
	}
	return nil
}

// skipLines returns a line for all layers of a model that are skipped for the same reason.
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
