package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/report/table"
	"github.com/noether-ml/noether/scores"
)

type exportFlags struct {
	csv, parquet, json, latex, markdown, wide, csvSafe, wandb bool
	out, mlflow, experiment                                   string
	table                                                     table.Options
	filter                                                    scores.Filter
	exchangeFlags
}

func exportCommand() *cobra.Command {
	e := &exportFlags{}
	c := &cobra.Command{
		Use:   "export RUN [RUN...]",
		Short: "Write scores as CSV, Parquet, JSON, as LaTeX or Markdown tables, for model pages or CI; or log them to MLflow",
		Long: `Writes the scores of one or several runs. --csv, --parquet and --json have a row for each score, with the columns of
scores.csv; --latex and --markdown, and --csv with --wide, have a row for each model and a column for each statistic under each
transformation, with 95 % intervals. Filters take names or patterns such as 'resnet*'.

--to writes the scores of one run as other places read them: hf-eval, a file .eval_results/*.yaml of a model's repository on the
Hugging Face hub; model-card, a section with a table and a picture; eee, a record of Every Eval Ever; junit, for the list of
tests of a CI; badge, an SVG of the worst value of a statistic. These hold the scores of an overview of the run.

--mlflow logs a run to an MLflow tracking server: scores as metrics, layers as steps, the study and figures as artifacts. It
reads MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, from the environment.`,
		Example: "  noether export runs/first --latex --measure effective-invariance -o table.tex\n" +
			"  noether export runs/first runs/second --parquet -o both.parquet\n" +
			"  noether export runs/first --to model-card -o README.md\n" +
			"  noether export runs/first --to badge --statistic ei -o robustness.svg\n" +
			"  noether export runs/first --mlflow http://localhost:5000",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, dirs []string) error { return e.run(c, dirs) },
	}
	f := c.Flags()
	f.BoolVar(&e.csv, "csv", false, "write CSV")
	f.BoolVar(&e.parquet, "parquet", false, "write Parquet")
	f.BoolVar(&e.json, "json", false, "write JSON")
	f.BoolVar(&e.latex, "latex", false, "write a LaTeX table (booktabs)")
	f.BoolVar(&e.markdown, "markdown", false, "write a Markdown table")
	f.BoolVar(&e.wide, "wide", false, "with --csv: the table of --markdown")
	f.BoolVar(&e.table.Plain, "plain", false, "tables without intervals")
	f.BoolVar(&e.csvSafe, "csv-safe", false, "CSV without formulas: names that start with =, +, - or @ get an apostrophe in front")
	f.StringVarP(&e.out, "out", "o", "", "output file (default: standard output); its extension sets the format if no flag does")
	f.StringVar(&e.mlflow, "mlflow", "", "log to the MLflow tracking server at this address, such as http://localhost:5000")
	f.BoolVar(&e.wandb, "wandb", false, "print how to log to Weights & Biases, which needs its Python package")
	f.StringVar(&e.experiment, "experiment", "", "with --mlflow: the experiment (default: the study's name)")
	addFilter(f, &e.filter)
	e.exchangeFlags.add(f)
	return c
}

func (e *exportFlags) run(c *cobra.Command, dirs []string) error {
	if e.wandb {
		return fmt.Errorf("runs are logged to Weights & Biases by its Python package: with wandb and the wheel of noether installed, run python -m noether_ml export-wandb %s", strings.Join(dirs, " "))
	}
	if e.to != "" {
		return e.exchange(c, dirs)
	}
	if flag := e.misplaced(c); flag != "" {
		return usagef(c, "--%s goes with --to", flag)
	}
	e.formatOfFile()
	if e.csvSafe {
		if e.parquet || e.json || e.latex || e.markdown || e.mlflow != "" {
			return usagef(c, "--csv-safe cannot be combined with a format other than CSV")
		}
		e.csv = true
	}
	formats := 0
	for _, set := range []bool{e.csv, e.parquet, e.json, e.latex, e.markdown, e.mlflow != ""} {
		if set {
			formats++
		}
	}
	if formats != 1 {
		return usagef(c, "give one format: --csv, --parquet, --json, --latex, --markdown, --to FORMAT or --mlflow ADDRESS, or -o with the extension .csv, .parquet, .json, .tex or .md")
	}
	if e.mlflow != "" {
		for _, dir := range dirs {
			if err := e.log(c, dir); err != nil {
				return err
			}
		}
		return nil
	}
	if e.parquet && e.out == "" && term.IsTerminal(int(os.Stdout.Fd())) {
		return usagef(c, "Parquet is binary and cannot be printed on a terminal: set a file with -o")
	}
	rows, err := e.rows(dirs)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return e.write(w, rows) }
	if e.out == "" {
		return write(os.Stdout)
	}
	if err := atomicfile.WriteFunc(e.out, write); err != nil {
		return err
	}
	note("wrote " + e.out)
	return nil
}

// formatOfFile sets the format by the extension of the output file, unless a flag sets it.
func (e *exportFlags) formatOfFile() {
	if e.csv || e.parquet || e.json || e.latex || e.markdown || e.mlflow != "" {
		return
	}
	switch strings.ToLower(filepath.Ext(e.out)) {
	case ".csv":
		e.csv = true
	case ".parquet":
		e.parquet = true
	case ".json":
		e.json = true
	case ".tex":
		e.latex = true
	case ".md":
		e.markdown = true
	}
}

// rows reads the scores of the run folders dirs that pass the filters.
func (e *exportFlags) rows(dirs []string) ([]scores.Row, error) {
	rows, _, err := readRuns(dirs)
	if err != nil {
		return nil, err
	}
	return e.filter.Rows(rows)
}

func (e *exportFlags) write(w io.Writer, rows []scores.Row) error {
	if e.csvSafe {
		rows = scores.WithoutFormulas(rows)
	}
	switch {
	case e.csv && !e.wide:
		return scores.WriteCSV(w, rows)
	case e.parquet:
		return parquetfile.Write(w, rows)
	case e.json:
		if rows == nil {
			rows = []scores.Row{}
		}
		return json.NewEncoder(w).Encode(rows)
	}
	o := e.table
	o.Every = len(e.filter.Statistic) > 0 // statistics asked for by name are all shown
	o.Measures = catalog.Descriptors()    // titles and ranges of the statistics
	t, err := table.Of(rows, o)
	if err != nil {
		return err
	}
	switch {
	case e.latex:
		return t.LaTeX(w)
	case e.markdown:
		return t.Markdown(w)
	case e.csv:
		return t.CSV(w)
	}
	return fmt.Errorf("no output is given: use --csv, --parquet, --json, --latex, --markdown, --to or --mlflow")
}
