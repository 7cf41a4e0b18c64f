package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure/seis"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

func compareCommand() *cobra.Command {
	var name string
	var asJSON bool
	settings := seis.Defaults()
	c := &cobra.Command{
		Use:   "compare Z.npy ZT.npy",
		Short: "Measure activations that come from elsewhere",
		Long: `Compares two arrays of activations of the same samples, from any framework: Z, a layer on x, and ZT, the
same layer on T(x). Both are b x c x h x w, or b x c x t; channels come second.`,
		Example: "  noether compare --measure seis Z.npy ZT.npy",
		Args:    usageArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if known := []string{"seis"}; !slices.Contains(known, name) {
				return usagef(c, "--measure is one of %v, not %q", known, name)
			}
			z, err := dataset.ReadArray(c.Context(), args[0], "")
			if err != nil {
				return err
			}
			zt, err := dataset.ReadArray(c.Context(), args[1], "")
			if err != nil {
				return err
			}
			return compare(c, z, zt, settings, asJSON)
		},
	}
	f := c.Flags()
	f.StringVar(&name, "measure", "seis", "what to compute")
	f.Float64Var(&settings.Variance, "variance", settings.Variance, "seis: part of the variance that the leading subspaces hold")
	f.IntVar(&settings.Positions, "positions", settings.Positions, "seis: positions to which larger layers are average-pooled")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func compare(c *cobra.Command, z, zt tensor.Tensor, settings seis.Settings, asJSON bool) error {
	if blas := linalg.Accelerate(); blas.Hint != "" {
		note("no fast BLAS was found: " + blas.Hint)
	}
	found, err := seis.Compare(z, zt, settings)
	if err != nil {
		return err
	}
	cell := scores.Cell{Measure: "seis", Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: found}}}
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", " ")
		return e.Encode(cell.Rows("compare"))
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "statistic\tvalue\tlow\thigh\tnull\tn\t")
	var warnings []string
	for _, s := range found {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t\n", s.Statistic, digits(s.Value), digits(s.Low), digits(s.High), digits(s.Null), s.N)
		for _, w := range s.Warnings {
			if !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Println("warning:", w)
	}
	return nil
}

func digits(v float64) string {
	if v != v {
		return ""
	}
	return fmt.Sprintf("%.6g", v)
}
