package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

func correlateCommand() *cobra.Command {
	var flags relationFlags
	var asJSON bool
	var csv string
	var apart []string
	var filter scores.Filter
	c := &cobra.Command{
		Use:   "correlate RUN [RUN...]",
		Short: "Relate a score to accuracy, and predict the accuracy of unlabelled data",
		Long: `Relates two scores over many models on one test set (--by model), or over many test sets for one
model (--by data); each model or test set is a point. Prints Pearson's and Spearman's correlation, and the error of
predicting each point from a robust line (Huber's M-estimator) fitted to the points of the other units. A unit is one point, or
several that depend on each other: models with the same tag run, such as checkpoints of one training, or data sets with the same
kind of corruption. Models or data with the score but without accuracy get a prediction with its interval.

A score is written MEASURE.STATISTIC@TRANSFORM. The scores of several runs are combined. With several --x the table has a
column of r / rho for each.`,
		Example: "  noether correlate runs/zoo --x effective-invariance.ei@rotation --by model --group family\n" +
			"  noether correlate runs/zoo --x effective-invariance.ei@rotation --x prediction-divergence.js@rotation\n" +
			"  noether correlate runs/corrupted --x effective-invariance.ei@gray --by data",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, dirs []string) error {
			relations, options, err := flags.relations(c)
			if err != nil {
				return err
			}
			rows, details, err := readRuns(dirs)
			if err != nil {
				return err
			}
			if rows, err = filter.Rows(rows); err != nil {
				return err
			}
			for i := range relations {
				flags.setGroupsAndUnits(&relations[i], details)
			}
			for i := range relations {
				relations[i].Apart = func(label string) bool {
					return slices.ContainsFunc(apart, func(pattern string) bool { return scores.Matches(pattern, label) })
				}
			}
			results, err := correlate(relations, rows, options)
			if err != nil {
				return err
			}
			if csv != "" {
				if err := writeCorrelations(csv, results); err != nil {
					return err
				}
			}
			return show(asJSON, results, func() error {
				if len(relations) > 1 {
					printColumns(stdout, results, terminalWidth(os.Stdout))
				} else {
					printCorrelations(stdout, results, terminalWidth(os.Stdout))
				}
				printDeviations(stdout, results, terminalWidth(os.Stdout))
				return nil
			})
		},
	}
	f := c.Flags()
	flags.add(f)
	f.StringArrayVar(&filter.Model, "model", nil, "use only the scores of this model, or of a pattern such as 'resnet*'; may be repeated")
	f.StringArrayVar(&filter.Data, "data", nil, "use only the scores on this data set, or on those of a pattern; may be repeated")
	f.StringArrayVar(&apart, "apart", nil, "leave models, or with --by data data sets, of this name or pattern out of the fit, and print how far they are from the line of the others; may be repeated")
	f.StringVar(&csv, "csv", "", "write the results as scores, with the columns of scores.csv, to this file")
	addJSON(c, &asJSON)
	return c
}

type relationFlags struct {
	x                 []string
	y, by, group      string
	linear, aboveNull bool
	options           correlation.Options
}

func (r *relationFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&r.x, "x", []string{"effective-invariance.ei"}, "the score X; may be repeated")
	f.StringVar(&r.y, "y", "accuracy.clean", "the score Y to predict")
	f.StringVar(&r.by, "by", "model", "kind of the points: model or data")
	f.StringVar(&r.group, "group", "", "a tag of the models: their colour in a scatter plot, and \"group\" of the points in JSON")
	f.BoolVar(&r.aboveNull, "above-null", false, "subtract the null, the value by chance, from the score X")
	f.BoolVar(&r.linear, "linear", false, "do not transform the accuracy to the logit scale")
	f.IntVar(&r.options.Bootstrap, "bootstrap", 1000, "resamples for intervals")
	f.Uint64Var(&r.options.Seed, "seed", 1, "seed of the resampling")
}

func (r *relationFlags) setGroupsAndUnits(relation *correlation.Relation, details *runDetails) {
	if r.group != "" {
		relation.Group = func(model string) string { return details.tags[model][r.group] }
	}
	relation.Units = details.units[relation.By]
}

// relations parses the flags. It returns a relation for each --x.
func (r *relationFlags) relations(c *cobra.Command) ([]correlation.Relation, correlation.Options, error) {
	options := r.options
	options.Logit = !r.linear
	y, err := scores.ParseSelector(r.y)
	if err != nil {
		return nil, options, usagef(c, "--y: %v", err)
	}
	if r.by != string(correlation.ByModel) && r.by != string(correlation.ByData) {
		return nil, options, usagef(c, "--by is %q: it must be model or data", r.by)
	}
	var relations []correlation.Relation
	for _, text := range r.x {
		x, err := scores.ParseSelector(text)
		if err != nil {
			return nil, options, usagef(c, "--x: %v", err)
		}
		relations = append(relations, correlation.Relation{X: x, Y: y, By: correlation.By(r.by), AboveNull: r.aboveNull})
	}
	return relations, options, nil
}

type runDetails struct {
	tags       map[string]map[string]string         // by model: the values of its tags in the study, by tag
	units      map[correlation.By]map[string]string // unit of each model and data set
	parameters map[string]string                    // titles of the parameters of transformations, by name
}

// readRuns reads the scores of several runs, and the tags and units of their models and data sets.
func readRuns(dirs []string) (rows []scores.Row, details *runDetails, err error) {
	details = &runDetails{tags: map[string]map[string]string{}, parameters: map[string]string{}, units: map[correlation.By]map[string]string{correlation.ByModel: {}, correlation.ByData: {}}}
	for _, dir := range dirs {
		result, err := study.ReadResult(dir)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, result.Rows...)
		for _, m := range result.Record.Models {
			details.tags[m.Name] = m.Tags
		}
		for _, t := range result.Record.Transforms {
			details.parameters[t.Name] = t.Parameter
		}
		models, data := result.Record.Units()
		maps.Copy(details.units[correlation.ByModel], models)
		maps.Copy(details.units[correlation.ByData], data)
	}
	return rows, details, nil
}

// Of is the data set of the models that are the points or, if By is "data", the model. The line is
// Y = Intercept + Slope X, with Y on the logit scale if Logit is set.
type correlationResult struct {
	By                string              `json:"by"`
	Of                string              `json:"of"`
	X                 string              `json:"x"`
	Y                 string              `json:"y"`
	N                 int                 `json:"n"`     // number of points
	Units             int                 `json:"units"` // number of independent units among them
	Pearson           interval            `json:"pearson"`
	Spearman          interval            `json:"spearman"`
	Intercept         float64             `json:"intercept"`
	Slope             float64             `json:"slope"`
	Logit             bool                `json:"logit"`
	MeanAbsoluteError number              `json:"leave_one_out_error"`
	Points            []correlation.Point `json:"points"`
	Predicted         []predicted         `json:"predicted,omitempty"`
	Apart             []deviation         `json:"apart,omitempty"`
	Warnings          []string            `json:"warnings,omitempty"`

	rows []scores.Row // the correlation as rows of scores, for --csv
}

// predicted is the predicted Y of a point that has only an X.
type predicted struct {
	Label string   `json:"label"`
	X     float64  `json:"x"`
	Y     interval `json:"y"`
}

// deviation is how far a point that takes no part in the fit is above the line of the others. Its
// interval is that of the line and the scatter of the others around it.
type deviation struct {
	Label     string   `json:"label"`
	X         float64  `json:"x"`
	Y         float64  `json:"y"`
	Deviation interval `json:"deviation"`
}

type interval struct {
	Value number `json:"value"`
	Low   number `json:"low"`
	High  number `json:"high"`
}

// A number is null in JSON if it is NaN or infinite.
type number float64

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if !finite(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// analyse calls add with the result of each set of points of each relation. It prints the errors of
// sets that cannot be analysed, and returns an error if none can.
func analyse(relations []correlation.Relation, rows []scores.Row, o correlation.Options, add func(r correlation.Relation, set correlation.Set, of int, fit *correlation.Fit)) error {
	var failed []string
	added := 0
	for _, r := range relations {
		sets, err := r.Sets(rows)
		if err != nil {
			return err
		}
		for _, set := range sets {
			fit, err := correlation.Analyse(set.Points, o)
			if err != nil {
				failed = append(failed, fmt.Sprintf("%s: %v", set.Name, err))
				continue
			}
			add(r, set, len(sets), fit)
			added++
		}
	}
	if added == 0 && len(failed) > 1 {
		return fmt.Errorf("%s; none of the %d sets of points can be analysed", failed[0], len(failed))
	}
	if added == 0 {
		return errors.New(strings.Join(failed, "; "))
	}
	for _, f := range failed {
		note(f)
	}
	return nil
}

// correlate returns the result for each set of points of the relations.
func correlate(relations []correlation.Relation, rows []scores.Row, o correlation.Options) (results []correlationResult, err error) {
	err = analyse(relations, rows, o, func(r correlation.Relation, set correlation.Set, _ int, fit *correlation.Fit) {
		result := resultOf(r, set, fit, o)
		result.rows = r.Rows(set, fit)
		results = append(results, result)
	})
	return results, err
}

func writeCorrelations(path string, results []correlationResult) error {
	var rows []scores.Row
	for _, r := range results {
		rows = append(rows, r.rows...)
	}
	return atomicfile.WriteFunc(path, func(w io.Writer) error { return scores.WriteCSV(w, rows) })
}

func resultOf(r correlation.Relation, set correlation.Set, fit *correlation.Fit, o correlation.Options) correlationResult {
	out := correlationResult{
		By: string(r.By), Of: set.Name, X: r.X.String(), Y: r.Y.String(), N: len(set.Points), Units: fit.Units, Warnings: fit.Warnings,
		Pearson:   interval{number(fit.Pearson.Value), number(fit.Pearson.Low), number(fit.Pearson.High)},
		Spearman:  interval{number(fit.Spearman.Value), number(fit.Spearman.Low), number(fit.Spearman.High)},
		Intercept: fit.Line.Intercept, Slope: fit.Line.Slope, Logit: o.Logit,
		MeanAbsoluteError: number(fit.MeanAbsoluteError()), Points: set.Points,
	}
	if r.AboveNull {
		out.X += " above its null"
	}
	for _, p := range set.Unlabelled {
		y := fit.Predict(p.X)
		out.Predicted = append(out.Predicted, predicted{p.Label, p.X, interval{number(y.Value), number(y.Low), number(y.High)}})
	}
	for _, p := range set.Apart {
		y := fit.Predict(p.X)
		out.Apart = append(out.Apart, deviation{p.Label, p.X, p.Y, interval{number(p.Y - y.Value), number(p.Y - y.High), number(p.Y - y.Low)}})
	}
	return out
}

// printDeviations prints how far points apart are from the line of the others.
func printDeviations(w io.Writer, results []correlationResult, width int) {
	t := textTable{header: []string{subjectTitle(results[0]), results[0].X, results[0].Y, "above the line", ""}}
	for _, r := range results {
		for _, p := range r.Apart {
			t.rows = append(t.rows, []string{r.Of + ", " + p.Label, digits(p.X), digits(p.Y), digits(float64(p.Deviation.Value)), p.Deviation.bounds()})
		}
	}
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintln(w)
	printFolded(w, width, "apart from the fit: %s above the line of the others, with the interval of a single further point", results[0].Y)
	t.align(1, 2, 3)
	fmt.Fprint(w, t.write(width, 0))
}

// printCorrelations prints tables of at most width columns; 0 is no limit.
func printCorrelations(w io.Writer, results []correlationResult, width int) {
	printFolded(w, width, "%s against %s, over %s", results[0].X, results[0].Y, pointsTitle(results[0]))
	t := textTable{header: []string{subjectTitle(results[0]), "n", "units", "Pearson", "", "Spearman", "", "error"}}
	for _, r := range results {
		t.rows = append(t.rows, []string{r.Of, strconv.Itoa(r.N), strconv.Itoa(r.Units), coefficient(r.Pearson), r.Pearson.bounds(),
			coefficient(r.Spearman), r.Spearman.bounds(), digits(float64(r.MeanAbsoluteError))})
	}
	t.align(1, 2, 3, 5, 7)
	fmt.Fprint(w, t.write(width, 0))
	printFolded(w, width, "error: mean absolute error of predicting each point from a line fitted to the other units")
	for _, r := range results {
		for _, text := range r.Warnings {
			printFolded(w, width, "%s: %s", r.Of, text)
		}
	}
	if !slices.ContainsFunc(results, func(r correlationResult) bool { return len(r.Predicted) > 0 }) {
		return
	}
	fmt.Fprintln(w)
	printFolded(w, width, "predicted %s", results[0].Y)
	t = textTable{header: []string{subjectTitle(results[0]), strings.TrimSuffix(pointsTitle(results[0]), "s"), "predicted", ""}}
	for _, r := range results {
		for _, p := range r.Predicted {
			t.rows = append(t.rows, []string{r.Of, p.Label, digits(float64(p.Y.Value)), p.Y.bounds()})
		}
	}
	t.align(2)
	fmt.Fprint(w, t.write(width, 0, 1))
}

func coefficient(c interval) string {
	if math.IsNaN(float64(c.Value)) {
		return "–"
	}
	return fmt.Sprintf("%+.3f", float64(c.Value))
}

// printColumns prints several scores like Table 1 of Deng, Gould and Zheng 2022.
func printColumns(w io.Writer, results []correlationResult, width int) {
	var sets, columns []string
	cells := map[[2]string]string{}
	for _, r := range results {
		if !slices.Contains(sets, r.Of) {
			sets = append(sets, r.Of)
		}
		if !slices.Contains(columns, r.X) {
			columns = append(columns, r.X)
		}
		cells[[2]string{r.Of, r.X}] = coefficient(r.Pearson) + " / " + coefficient(r.Spearman)
	}
	printFolded(w, width, "Pearson's r / Spearman's rho with %s, over %s", results[0].Y, pointsTitle(results[0]))
	t := textTable{header: append([]string{subjectTitle(results[0])}, columns...)}
	for _, set := range sets {
		row := []string{set}
		for _, x := range columns {
			row = append(row, cells[[2]string{set, x}])
		}
		t.rows = append(t.rows, row)
	}
	if !t.fits(width) { // a row for each score instead
		t = textTable{header: []string{subjectTitle(results[0]), "score", "r", "rho"}}
		for _, r := range results {
			t.rows = append(t.rows, []string{r.Of, r.X, coefficient(r.Pearson), coefficient(r.Spearman)})
		}
		t.align(2, 3)
	}
	fmt.Fprint(w, t.write(width, 0, 1))
}

// subjectTitle returns the title of the first column of the table: what the points share.
func subjectTitle(r correlationResult) string {
	if r.By == string(correlation.ByData) {
		return "model"
	}
	return "data"
}

func pointsTitle(r correlationResult) string {
	if r.By == string(correlation.ByData) {
		return "data sets"
	}
	return "models"
}

func intervalOf(r scores.Row) interval {
	return interval{number(r.Value), number(r.Low), number(r.High)}
}

// bounds returns the ends of the interval as text, or "" if there are none.
func (i interval) bounds() string {
	if math.IsNaN(float64(i.Low)) {
		return ""
	}
	return fmt.Sprintf("[%.3f, %.3f]", float64(i.Low), float64(i.High))
}
