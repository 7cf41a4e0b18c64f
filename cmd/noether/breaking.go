package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/transform"
)

func breakingPointCommand() *cobra.Command {
	var tolerances, failIf []string
	var neutral float64
	var asJSON bool
	c := &cobra.Command{
		Use:   "breaking-point RUN",
		Short: "Print up to which strength of a transformation a score keeps to a tolerance",
		Long: `Prints the smallest strength of a transformation at which a score no longer keeps to a tolerance, for each model, data
set, transformation with a list of numbers, and layer. The strength is the distance of the parameter's value from the one that
changes nothing, such as 0 degrees or a brightness of 1; values on both sides of it give two points. Between values that were tried
it is interpolated linearly; its 95 % interval is where the ends of the score's interval cross the tolerance.

A tolerance is SCORE >= NUMBER or SCORE <= NUMBER; with % it is a share of the score without the transformation. Without one, the
tolerances of the study's transformations count. With --fail-if it exits with 1 if a point lies below a strength.`,
		Example: "  noether breaking-point runs/first\n" +
			"  noether breaking-point runs/first --tolerance 'accuracy.moved >= 95%'\n" +
			"  noether breaking-point runs/first --tolerance 'effective-invariance.ei@tilt >= 0.8' --tolerance 'distance.cosine/layer4 <= 0.1'\n" +
			"  noether breaking-point runs/first --fail-if 'breaking-point(tilt, ei, 0.8) < 10'",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			run, err := study.ReadResult(args[0])
			if err != nil {
				return err
			}
			cells, _, err := study.ReadCells(args[0])
			if err != nil {
				return err
			}
			own, zero := ownTolerances(run)
			if c.Flags().Changed("neutral") {
				zero = func(string) (float64, error) { return neutral, nil }
			}
			var asked []scores.Tolerance
			for _, text := range tolerances {
				t, err := scores.ParseTolerance(text)
				if err != nil {
					return usagef(c, "--tolerance: %v", err)
				}
				asked = append(asked, t)
			}
			if len(tolerances)+len(failIf) == 0 {
				asked = own
			}
			points, err := breakingPoints(cells, asked, zero)
			if err != nil {
				return err
			}
			var failed []string
			for _, text := range failIf {
				t, least, err := parseBreakingCondition(text, run.Record.Measures)
				if err != nil {
					return usagef(c, "--fail-if: %v", err)
				}
				found, err := scores.BreakingPointsOfCells(cells, t, zero)
				if err != nil {
					return err
				}
				points = append(points, found...)
				for _, b := range found {
					if b.State == scores.Before && b.Smallest <= least || b.State == scores.Found && b.Strength < least {
						failed = append(failed, fmt.Sprintf("%s: %s (%s)", text, b, b.Row.Describe()))
					} else if b.State != scores.Found && b.Largest < least {
						return fmt.Errorf("%s: %s is not decided: strengths up to %v were tried (%s)", text, b, b.Largest, b.Row.Describe())
					}
				}
			}
			if len(points) == 0 {
				return usagef(c, "the study has no tolerance: give a --tolerance, such as 'effective-invariance.ei >= 0.8', or --fail-if")
			}
			if err := show(asJSON, breakingJSON(points), func() error { return printBreakingPoints(points) }); err != nil {
				return err
			}
			if len(failed) > 0 {
				return fmt.Errorf("conditions met: %s", strings.Join(failed, "; "))
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringArrayVar(&tolerances, "tolerance", nil, "SCORE >= NUMBER, SCORE <= NUMBER, or with % relative to the score without the transformation; may be given several times")
	f.StringArrayVar(&failIf, "fail-if", nil, "fail if 'breaking-point(TRANSFORM, SCORE, LIMIT) < STRENGTH': a point is below the strength; may be given several times")
	f.Float64Var(&neutral, "neutral", 0, "the parameter's value that changes nothing (default: that of the transformation)")
	addJSON(c, &asJSON)
	return c
}

func breakingPoints(cells []scores.Cell, tolerances []scores.Tolerance, zero func(string) (float64, error)) ([]scores.BreakingPoint, error) {
	var out []scores.BreakingPoint
	for _, t := range tolerances {
		found, err := scores.BreakingPointsOfCells(cells, t, zero)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// ownTolerances returns the tolerances of the transformations of a run's study, and a function that
// returns the neutral value of a transformation by its name there.
func ownTolerances(run *study.Result) ([]scores.Tolerance, func(string) (float64, error)) {
	kinds := map[string]string{}
	var tolerances []scores.Tolerance
	if s, err := catalog.Parse("study.yaml", []byte(run.Record.Resolved), nil); err == nil {
		for _, t := range s.Transforms {
			kinds[t.Name] = t.Kind
			tolerances = append(tolerances, t.Tolerances...)
		}
	}
	return tolerances, func(name string) (float64, error) {
		v, ok := transform.Neutral(kinds[name])
		if !ok {
			return 0, fmt.Errorf("at which value %s changes nothing is not known: give --neutral", name)
		}
		return v, nil
	}
}

var breakingCondition = regexp.MustCompile(`^breaking-point\(\s*([^,]+?)\s*,\s*([^,]+?)\s*,\s*([^,)]+?)\s*\)\s*<\s*(\S+)$`)

// parseBreakingCondition parses "breaking-point(TRANSFORM, [MEASURE.]STATISTIC[/LAYER], LIMIT) <
// STRENGTH". Whether the limit is a lower or an upper one follows from the statistic, of which the
// measures of the run say which end is better.
func parseBreakingCondition(text string, measures []measure.Descriptor) (t scores.Tolerance, least float64, err error) {
	m := breakingCondition.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return t, 0, fmt.Errorf("invalid condition %q: write breaking-point(TRANSFORM, STATISTIC, LIMIT) < STRENGTH", text)
	}
	if least, err = strconv.ParseFloat(m[4], 64); err != nil || math.IsNaN(least) {
		return t, 0, fmt.Errorf("invalid condition %q: %q is not a number", text, m[4])
	}
	name, layer, _ := strings.Cut(m[2], "/")
	if least < 0 {
		return t, 0, fmt.Errorf("invalid condition %q: a strength is at least 0", text)
	}
	var found, known []string
	operator, within := ">=", measure.AnyNumber
	for _, d := range measures {
		for _, s := range d.Statistics {
			known = append(known, s.Name)
			if full := d.Name + "." + s.Name; name == s.Name || name == full {
				found = append(found, full)
				within = s.Range
				if s.Direction == measure.Lower {
					operator = "<="
				}
			}
		}
	}
	if len(found) == 0 {
		return t, 0, fmt.Errorf("invalid condition %q: no statistic of the run is called %s; %s", text, name, config.Suggest(name, known))
	}
	if len(found) > 1 {
		return t, 0, fmt.Errorf("invalid condition %q: %d statistics of the run are called %s: write one of %s", text, len(found), name, strings.Join(found, ", "))
	}
	score := found[0] + "@" + m[1]
	if layer != "" {
		score += "/" + layer
	}
	if t, err = scores.ParseTolerance(score + " " + operator + " " + m[3]); err == nil && !t.Relative && within.Low < within.High && (t.Limit < within.Low || t.Limit > within.High) {
		err = fmt.Errorf("invalid condition %q: %s is from %v to %v, and %v is not; write %v%% for a share of the score without the transformation",
			text, found[0], within.Low, within.High, t.Limit, t.Limit)
	}
	return t, least, err
}

type breakingPointJSON struct {
	Model     string   `json:"model"`
	Layer     string   `json:"layer,omitempty"`
	Data      string   `json:"data"`
	Transform string   `json:"transform"`
	Tolerance string   `json:"tolerance"`
	Neutral   float64  `json:"neutral"`
	Side      int      `json:"side"`
	State     string   `json:"state"`
	Strength  *float64 `json:"strength"`
	Low       *float64 `json:"low"`
	High      *float64 `json:"high"`
	Largest   float64  `json:"largest"`
	Area      *float64 `json:"area"`
	AreaLow   *float64 `json:"area_low"`
	AreaHigh  *float64 `json:"area_high"`
}

func breakingJSON(points []scores.BreakingPoint) []breakingPointJSON {
	number := func(v float64) *float64 { // null where there is none
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	out := []breakingPointJSON{}
	for _, b := range points {
		out = append(out, breakingPointJSON{
			Model: b.Row.Model, Layer: b.Row.Layer, Data: b.Row.Data, Transform: b.Row.Transform, Tolerance: b.Tolerance.String(), Neutral: b.Neutral,
			Side: b.Side, State: string(b.State), Strength: number(b.Strength), Low: number(b.Low), High: number(b.High), Largest: b.Largest,
			Area: number(b.Area), AreaLow: number(b.AreaLow), AreaHigh: number(b.AreaHigh),
		})
	}
	return out
}

func printBreakingPoints(points []scores.BreakingPoint) error {
	t := textTable{header: []string{"tolerance", "data", "transform", "model", "layer", "breaking point", "mean over strengths"}}
	for _, b := range points {
		name := b.Row.Transform
		if slices.ContainsFunc(points, func(o scores.BreakingPoint) bool { return o.Row.Transform == name && o.Side != b.Side }) {
			name += map[int]string{1: " +", -1: " -"}[b.Side]
		}
		area := ""
		if !math.IsNaN(b.Area) {
			area = fmt.Sprintf("%.4g [%.4g, %.4g]", b.Area, b.AreaLow, b.AreaHigh)
		}
		t.rows = append(t.rows, []string{b.Tolerance.String(), b.Row.Data, name, b.Row.Model, b.Row.Layer, b.String(), area})
	}
	_, err := io.WriteString(stdout, t.write(terminalWidth(os.Stdout), 0, 1))
	return err
}
