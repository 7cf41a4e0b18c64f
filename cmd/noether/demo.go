package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/noether-ml/noether/internal/browse"
	"github.com/noether-ml/noether/internal/demo"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study"
)

func demoCommand(engine *engineFlags) *cobra.Command {
	var out string
	var asJSON, noOpen bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Measure two small models, one of them rotation-invariant by construction",
		Long: `Builds two small classifiers of synthetic figures, without downloading or training anything: a bank
of Gabor filters with a linear read-out, and the same with a maximum over orientations before
pooling. The second is rotation-invariant by construction and the first is not. The demo measures
both, says so in words, writes a report, and opens it where there is a desktop.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := engine.open()
			if err != nil {
				return err
			}
			if err := runDemo(c.Context(), out, o, asJSON); err != nil {
				return err
			}
			if !noOpen && !asJSON && term.IsTerminal(int(os.Stdout.Fd())) {
				openReport(filepath.Join(out, "report.html"))
			}
			return nil
		},
	}
	c.Flags().StringVarP(&out, "out", "o", filepath.Join("runs", "demo"), "the run folder")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&noOpen, "no-open", false, "do not open the report")
	return c
}

// openReport opens a report in the browser, or prints how to open it.
func openReport(path string) {
	switch err := browse.Open(path); {
	case err == nil:
		fmt.Println("\nThe report is open in your browser. Next: noether init MODEL DATA -o study.yaml")
	case errors.Is(err, browse.ErrNoDesktop):
		fmt.Printf("\nOpen %s in a browser, or: noether serve %s\n", path, filepath.Dir(path))
	default:
		note("the report could not be opened: " + err.Error())
	}
}

func runDemo(ctx context.Context, out string, o study.Options, asJSON bool) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	var words io.Writer = os.Stdout
	if asJSON {
		words = io.Discard
	}
	fmt.Fprintln(words, "Two classifiers of figures look at the world through the same Gabor filters, twelve orientations in")
	fmt.Fprintln(words, "five scales. One keeps the orientations apart; the other takes the strongest at each place, and so")
	fmt.Fprintln(words, "cannot tell which way a figure is turned.")
	fmt.Fprintln(words)
	files, err := demo.Build(ctx, o.Runtime, filepath.Join(out, "models"))
	if err != nil {
		return err
	}
	s, err := study.Load(files.Study, nil)
	if err != nil {
		return err
	}
	progress, done := watch(os.Stderr)
	o.Progress = progress
	result, err := study.Run(ctx, s, out, o)
	done()
	if err != nil {
		return err
	}
	if err := show(result, out, asJSON); err != nil {
		return err
	}
	return summarise(words, result.Rows)
}

// summarise prints in words what the scores of the demo show.
func summarise(words io.Writer, rows []scores.Row) error {
	ei, upright := map[string]scores.Row{}, map[string]scores.Row{}
	quarter := map[string]scores.Row{}
	for _, r := range rows {
		switch {
		case r.Statistic == "ei" && r.Parameter == "" && r.Factor == "":
			ei[r.Model] = r
		case r.Statistic == "ei" && r.Parameter == "90" && r.Factor == "":
			quarter[r.Model] = r
		case r.Statistic == "clean" && r.Parameter == "90" && r.Factor == "":
			upright[r.Model] = r
		}
	}
	a, b := ei["oriented"], ei["invariant"]
	fmt.Fprintf(words, "\nOn upright figures both models are accurate (%.0f %% and %.0f %%). Under rotation, averaged over twelve angles,\n", 100*upright["oriented"].Value, 100*upright["invariant"].Value)
	fmt.Fprintf(words, "the effective invariance of invariant is %.3f [%.3f, %.3f], that of oriented %.3f [%.3f, %.3f].\n", b.Value, b.Low, b.High, a.Value, a.Low, a.High)
	if b.Low <= a.High {
		return fmt.Errorf("the demo failed: the model that is invariant by construction scores %v, the other %v", b.Value, a.Value)
	}
	fmt.Fprintf(words, "At 90 degrees it is %.3f against %.3f. (At 180 degrees neither changes: the filters are symmetric.)\n", quarter["invariant"].Value, quarter["oriented"].Value)
	return nil
}
