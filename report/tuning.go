package report

import (
	"fmt"
	"io"
	"os"

	"github.com/noether-ml/noether/scores"
)

// A TuningCurve is how a unit answers along the trajectory around the input that drives it most.
type TuningCurve struct {
	Model, Layer, Data, Transform, Measure, Factor string

	Unit      int
	Threshold float64   // it fires at values from here on; in the sign of the values
	Sign      int       // -1: it fires at values from there down
	Amounts   []float64 // how far along the trajectory: an angle, a phase, frames
	Values    []float64
}

// mostCurvePoints bounds the points of all curves in a page.
const mostCurvePoints = 100_000

// readCurves reads the tuning curves of a run, from curves.parquet in its folder; none where there
// is no such file.
func readCurves(root *os.Root) (found []TuningCurve, notes []string, err error) {
	err = readFile(root, "curves.parquet", func(f io.ReaderAt, size int64) error {
		type unit struct {
			model, layer, data, transform, measure, factor string
			trial, unit                                    int
		}
		place := make(map[unit]int)
		points := 0
		err := scores.ReadCurves(f, size, func(r scores.CurveRow) {
			if points++; points > mostCurvePoints {
				return
			}
			u := unit{r.Model, r.Layer, r.Data, r.Transform, r.Measure, r.Factor, r.Trial, r.Unit}
			i, seen := place[u]
			if !seen {
				i = len(found)
				place[u] = i
				found = append(found, TuningCurve{Model: r.Model, Layer: r.Layer, Data: r.Data, Transform: r.Transform, Measure: r.Measure, Factor: r.Factor,
					Unit: r.Unit, Threshold: r.Threshold, Sign: r.Sign})
			}
			found[i].Amounts, found[i].Values = append(found[i].Amounts, r.Amount), append(found[i].Values, r.Value)
		})
		if points > mostCurvePoints {
			notes = append(notes, fmt.Sprintf("the report shows the first %s points of %s of tuning curves", Count(mostCurvePoints), Count(points)))
		}
		return err
	})
	return found, notes, err
}

// Firing returns the share of the trajectory on which the unit fires.
func (c *TuningCurve) Firing() float64 {
	steps, fires := 0, 0
	for _, v := range c.Values {
		if !finite(v) {
			continue
		}
		steps++
		if float64(c.Sign)*v >= float64(c.Sign)*c.Threshold {
			fires++
		}
	}
	return float64(fires) / float64(max(1, steps))
}

// Sentence says on how much of its trajectory the unit fires.
func (c *TuningCurve) Sentence() string {
	return fmt.Sprintf("Unit %d fires on %.0f %% of the steps of its trajectory.", c.Unit, 100*c.Firing())
}
