package report

import (
	"fmt"
	"io"
	"os"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/scores"
)

// A TuningCurve is the response of a unit along a trajectory.
type TuningCurve struct {
	Model, Layer, Data, Transform, Measure, Factor string // Factor: what varies, such as phase

	Unit      int       // index in the layer
	Threshold float64   // the unit fires at or above it (at or below it if Sign is -1)
	Sign      int       // 1 or -1; see Threshold
	Amounts   []float64 // position along the trajectory: an angle, a phase, frames
	Values    []float64 // response at each of Amounts
}

// maxCurvePoints limits the total number of points of the curves in a page.
const maxCurvePoints = 100_000

// readCurves reads curves.parquet, or nothing if the file does not exist.
func readCurves(root *os.Root) (found []TuningCurve, notes []string, err error) {
	err = readFile(root, "curves.parquet", func(f io.ReaderAt, size int64) error {
		type unit struct {
			model, layer, data, transform, measure, factor string
			trial, unit                                    int
		}
		place := make(map[unit]int)
		points := 0
		err := parquetfile.ReadCurves(f, size, func(r scores.CurveRow) {
			if points++; points > maxCurvePoints {
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
		if points > maxCurvePoints {
			notes = append(notes, fmt.Sprintf("the report shows the first %s points of %s of tuning curves", Count(maxCurvePoints), Count(points)))
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
		if c.Fires(v) {
			fires++
		}
	}
	return float64(fires) / float64(max(1, steps))
}

// Fires reports whether the unit fires at a value.
func (c *TuningCurve) Fires(v float64) bool { return float64(c.Sign)*v >= float64(c.Sign)*c.Threshold }

// Sentence returns a sentence on the share of the trajectory on which the unit fires.
func (c *TuningCurve) Sentence() string {
	return fmt.Sprintf("Unit %d fires on %.0f %% of the steps of its trajectory.", c.Unit, 100*c.Firing())
}
