package firing

import (
	"context"
	"slices"

	"github.com/noether-ml/noether/measure"
)

// reportUnits passes the scores of single units and the tuning curves to the job, the run of the
// measure on a model and its data. Its functions Units and Curves store them, and are nil if they
// are not wanted. Settings.Curves is the number of curves of a layer.
func (r *run) reportUnits(ctx context.Context) error {
	if r.job.Units != nil {
		for layer := range r.results {
			for kind := range r.trajectories {
				// in parts of maxPart units, since the rows of a million units would take 200 MB
				for n, lo := r.results[layer].units.count(), 0; lo < n; lo += maxPart {
					if err := r.job.Units(r.table(layer, kind, lo, min(n, lo+maxPart))); err != nil {
						return err
					}
				}
			}
		}
	}
	if r.job.Curves == nil || r.settings.Curves == 0 {
		return nil
	}
	for kind := range r.trajectories {
		rows, err := r.curves(ctx, kind)
		if err == nil {
			err = r.job.Curves(rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A curve is the tuning curve of a unit: its values along the trajectory of its strongest input.
type curve struct {
	layer, unit int
	side        int                    // index in signs, of the unit's sign: it fires at high values (1) or low ones (-1)
	rows        []measure.UnitResponse // by step
}

type point struct{ curve, step int }

func (r *run) curves(ctx context.Context, kind int) ([]measure.UnitResponse, error) {
	p := r.trajectories[kind]
	var all []curve
	var g group
	pointsOf := map[int][]point{} // by number of the image, which is an input on a trajectory
	for layer, f := range r.results {
		units := r.bestUnits(layer, kind)
		if len(units) > 0 {
			g = append(g, chunk{layer, 0, f.units.count()})
		}
		for _, u := range units {
			v := f.score(u, kind, len(r.readable), r.referenceCount()*len(p.amounts))
			c := curve{layer: layer, unit: u, side: v.side, rows: make([]measure.UnitResponse, len(p.amounts))}
			for step, number := range p.images(r.places.place(f.strongest[v.side][u])) {
				pointsOf[number] = append(pointsOf[number], point{len(all), step})
			}
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	var numbers []int
	for number := range pointsOf {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	e, err := newReader(r.job, g, r.units, r.batch)
	if err != nil {
		return nil, err
	}
	defer e.close()
	err = e.forEach(ctx, numbers, r.batch, p.read, func(s *activations, _ int) error {
		for i, image := range s.images {
			for _, pt := range pointsOf[image.number] {
				c := &all[pt.curve]
				rows := s.values[c.layer]
				c.rows[pt.step] = r.response(c, kind, pt.step, rows.data[i*rows.n+c.unit])
			}
		}
		return nil
	})
	var out []measure.UnitResponse
	for _, c := range all {
		out = append(out, c.rows...)
	}
	return out, err
}

// response returns a point of a curve; the parameter at the step is amounts[step]. q is the
// threshold for the sign times the value.
func (r *run) response(c *curve, kind, step int, value float32) measure.UnitResponse {
	f := r.results[c.layer]
	return measure.UnitResponse{Layer: c.layer, Factor: r.trajectories[kind].factor, Unit: c.unit, Sign: int(signs[c.side]),
		Threshold: float64(signs[c.side] * f.q[c.side][c.unit]), Strongest: int(f.strongest[c.side][c.unit]),
		Step: step, Amount: r.trajectories[kind].amounts[step], Value: float64(value)}
}
