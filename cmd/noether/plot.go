package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/figure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

type plotFlags struct {
	relative         bool
	out, chart, font string
	options          figure.Options
	filter           scores.Filter
	relation         relationFlags // of a scatter
}

func plotCommand() *cobra.Command {
	p := &plotFlags{}
	c := &cobra.Command{
		Use:   "plot RUN [RUN...]",
		Short: "Draw a figure as PDF, SVG or PNG",
		Long: `Draws a figure of the scores of one or several runs, without a browser. The format is that of the file extension.

The charts: depth (curves over layers), parameter (curves over a transformation's values), bars, heat (a matrix), distribution
(histograms of the per-sample values that a run keeps: of 500 samples, or of all with samples: true), scatter (a score
against accuracy, as noether correlate), confidence (curves over the threshold of confidence of boxes).
Filters are names or patterns such as 'resnet*', and may be repeated.`,
		Example: "  noether plot runs/first --chart depth --measure seis -o depth.pdf\n" +
			"  noether plot runs/first --chart parameter --statistic ei --columns 2 -o curve.svg\n" +
			"  noether plot runs/zoo --chart scatter --x effective-invariance.ei@rotation --group family -o zoo.pdf",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, dirs []string) error { return p.run(c, dirs) },
	}
	f := c.Flags()
	f.StringVarP(&p.out, "out", "o", "", "output file: NAME.pdf, NAME.svg or NAME.png")
	f.StringVar(&p.chart, "chart", "depth", chartNames())
	f.IntVar(&p.options.Columns, "columns", 1, "columns of the page that the figure spans: 1 (85 mm) or 2 (175 mm)")
	f.Float64Var(&p.options.Width, "width", 0, "width in mm, instead of --columns")
	f.Float64Var(&p.options.Height, "height", 0, "height in mm (default: derived from the width)")
	f.StringVar(&p.font, "font", "sans", "sans or serif")
	f.StringVar(&p.options.Title, "title", "", "title above the figure")
	f.BoolVar(&p.relative, "relative", false, "depth from 0, the first layer measured, to 1, the last (default: if models differ in depth)")
	f.BoolVar(&p.options.Zoom, "zoom", false, "axes show the range of the values instead of that of the statistic")
	fields := strings.Join(report.FieldNames(), ", ")
	f.StringVar((*string)(&p.options.Colour), "colour", "", "field that colours show: "+fields)
	f.StringVar((*string)(&p.options.Panel), "panel", "", "field with a panel for each value")
	f.StringVar((*string)(&p.options.Across), "across", "", "field of the columns of a heat map, or of the categories of bars")
	f.StringVar((*string)(&p.options.Down), "down", "", "field of the rows of a heat map")
	f.StringVar(&p.options.Highlight, "highlight", "", "the one model, or other value that colours show, in colour; the others are grey")
	f.BoolVar(&p.options.Labels, "labels", false, "label the points of a scatter")
	addFilter(f, &p.filter)
	p.relation.add(f)
	return c
}

// addFilter adds the flags that choose scores.
func addFilter(flags *pflag.FlagSet, f *scores.Filter) {
	for name, list := range map[string]*[]string{
		"measure": &f.Measure, "statistic": &f.Statistic, "model": &f.Model, "data": &f.Data, "transform": &f.Transform,
		"parameter": &f.Parameter, "layer": &f.Layer, "variant": &f.Variant, "factor": &f.Factor,
	} {
		flags.StringArrayVar(list, name, nil, "use only the scores of this "+name)
	}
}

func chartNames() string {
	var names []string
	for _, c := range figure.Charts {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

func (p *plotFlags) run(c *cobra.Command, dirs []string) error {
	format := strings.TrimPrefix(filepath.Ext(p.out), ".")
	switch {
	case p.out == "":
		return usagef(c, "the output file is missing: set -o to NAME.pdf, NAME.svg or NAME.png")
	case !slices.Contains(figure.Formats, format):
		return usagef(c, "-o is %s: the extension must be one of %s", p.out, strings.Join(figure.Formats, ", "))
	case p.font != "sans" && p.font != "serif":
		return usagef(c, "--font is %q: it must be sans or serif", p.font)
	case p.options.Columns != 1 && p.options.Columns != 2:
		return usagef(c, "--columns is %d: it must be 1 or 2", p.options.Columns)
	case !slices.Contains(figure.Charts, figure.Chart(p.chart)):
		return usagef(c, "--chart must be one of %s, not %q", chartNames(), p.chart)
	}
	p.options.Chart, p.options.Serif = figure.Chart(p.chart), p.font == "serif"
	if c.Flags().Changed("relative") {
		p.options.Depth = map[bool]string{true: "relative", false: "absolute"}[p.relative]
	}
	p.options.Every = len(p.filter.Statistic) > 0 // statistics asked for by name are all drawn
	f, err := p.draw(c, dirs)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFunc(p.out, func(w io.Writer) error { return f.Write(w, format) }); err != nil {
		return err
	}
	note("wrote " + p.out)
	return nil
}

func (p *plotFlags) draw(c *cobra.Command, dirs []string) (*figure.Figure, error) {
	if p.options.Chart == figure.Scatter {
		return p.scatter(c, dirs)
	}
	rows, err := p.rows(dirs)
	if err != nil {
		return nil, err
	}
	p.options.Measures = catalog.Descriptors() // titles and ranges of the statistics
	return figure.Draw(rows, p.options)
}

// rows reads the rows that pass the filters: scores, or per-sample values for a distribution.
func (p *plotFlags) rows(dirs []string) ([]scores.Row, error) {
	if p.options.Chart == figure.Distribution {
		return p.samples(dirs)
	}
	rows, details, err := readRuns(dirs)
	if err != nil {
		return nil, err
	}
	// All rows, also those that are not drawn, determine the first and the last layer of a model.
	p.options.Run, p.options.Parameters = rows, details.parameters
	return p.filter.Rows(rows)
}

// maxSamples is the largest number of per-sample values of a distribution. It bounds memory.
const maxSamples = 4 << 20

// samples reads the per-sample values of run folders.
func (p *plotFlags) samples(dirs []string) ([]scores.Row, error) {
	var rows []scores.Row
	for _, dir := range dirs {
		path := filepath.Join(dir, "samples.parquet")
		err := parquetfile.ReadFile(path, parquetfile.ReadSamples, func(s scores.SampleRow) {
			r := s.Row()
			if len(rows) < maxSamples && p.filter.Matches(&r) {
				rows = append(rows, r)
			}
		})
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s has no per-sample values: set samples: true in its study", dir)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %w", err)
		}
	}
	if len(rows) == maxSamples {
		return nil, fmt.Errorf("more than %d per-sample values: choose some with --model, --transform, --statistic", maxSamples)
	}
	if len(rows) == 0 {
		return nil, errors.New("no per-sample values pass the filters")
	}
	return rows, nil
}

// scatter draws a scatter plot for each set of points of each relation.
func (p *plotFlags) scatter(c *cobra.Command, dirs []string) (*figure.Figure, error) {
	relations, options, err := p.relation.relations(c)
	if err != nil {
		return nil, err
	}
	rows, details, err := readRuns(dirs)
	if err != nil {
		return nil, err
	}
	// --x and --y name the scores; only models and data are left to filter.
	if rows, err = (scores.Filter{Model: p.filter.Model, Data: p.filter.Data}).Rows(rows); err != nil {
		return nil, err
	}
	for i := range relations {
		p.relation.setGroupsAndUnits(&relations[i], details)
	}
	var charts []report.Scatter
	err = analyse(relations, rows, options, func(r correlation.Relation, set correlation.Set, of int, fit *correlation.Fit) {
		title := ""
		if of > 1 {
			title = set.Name
		}
		charts = append(charts, report.NewScatter(fit.Points, fit, title, axisOf(r.X, r.AboveNull), axisOf(r.Y, false), options.Logit))
	})
	if err != nil {
		return nil, err
	}
	return figure.DrawScatter(charts, p.options)
}

// axisOf returns the title of the axis of a score.
func axisOf(s scores.Selector, aboveNull bool) string {
	name := strings.ReplaceAll(s.Measure, "-", " ")
	if s.Statistic != "ei" && s.Statistic != "clean" { // the main statistics of their measures
		name += " (" + s.Statistic + ")"
	}
	if s.Transform != "" {
		name += " to " + s.Transform
		if s.Parameter != "" {
			name += " " + s.Parameter
		}
	}
	if aboveNull {
		name += " above its null"
	}
	return name
}
