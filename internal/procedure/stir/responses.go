package stir

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

type responses struct {
	layers    []tensor.Tensor // for each layer: n images x d values of the layer
	class     []int           // predicted classes; nil if the model has no class scores
	nonFinite []map[int]error // for each layer, by image: the error for NaN or infinity
}

// selectRows leaves out nonFinite.
func (v *responses) selectRows(rows []int) *responses {
	some := &responses{}
	for _, l := range v.layers {
		some.layers = append(some.layers, selectRows(l, rows))
	}
	if v.class != nil {
		for _, row := range rows {
			some.class = append(some.class, v.class[row])
		}
	}
	return some
}

// finiteRows returns the rows, out of n, for which all layers but the omitted are finite. If there
// are fewer than two, the error names the layer.
func (r *run) finiteRows(n int, a, b *responses) (rows []int, err error) {
	for i := range n {
		finite := true
		for side, v := range []*responses{a, b} {
			for k, errs := range v.nonFinite {
				if e := errs[i]; e != nil && r.omitted[side][k] == nil {
					finite = false
					if err == nil {
						err = e
					}
				}
			}
		}
		if finite {
			rows = append(rows, i)
		}
	}
	if len(rows) >= 2 {
		err = nil
	}
	return rows, err
}

// omitLayers omits layers with NaN or infinity for more than half of the images, and their pairs;
// none if no pair were left.
func (r *run) omitLayers(a, b *responses) {
	n := len(r.samples)
	for side, v := range []*responses{a, b} {
		r.omitted[side] = map[int]error{}
		for k, errs := range v.nonFinite {
			if 2*len(errs) > n {
				r.omitted[side][k] = errs[slices.Min(slices.Collect(maps.Keys(errs)))]
			}
		}
	}
	job := *r.job
	job.Pairs = slices.DeleteFunc(slices.Clone(job.Pairs), func(p [2]int) bool { return r.whyOmitted(p) != nil })
	if len(job.Pairs) == 0 {
		r.omitted = [2]map[int]error{}
		return
	}
	r.allPairs, r.job = r.job.Pairs, &job
}

func (r *run) whyOmitted(pair [2]int) error {
	if err := r.omitted[measure.SideA][pair[0]]; err != nil {
		return err
	}
	return r.omitted[measure.SideB][pair[1]]
}

// withOmitted adds scores without a value for the omitted pairs, one for each statistic.
func (r *run) withOmitted(scores []measure.PairScore) []measure.PairScore {
	out := scores
	for _, pair := range r.allPairs {
		why := r.whyOmitted(pair)
		if why == nil {
			continue
		}
		for _, s := range scores {
			if r.job.Pairs[0] == [2]int{s.A, s.B} {
				out = append(out, measure.PairScore{A: pair[0], B: pair[1], Score: s.Undefined(why.Error())})
			}
		}
	}
	return out
}

// Images have the size of A's input, and are resized for B.
func (r *run) runModels(ctx context.Context, images tensor.Tensor) (a, b *responses, err error) {
	if a, err = runModel(ctx, r.job.A, images, measure.SideA); err != nil {
		return nil, nil, err
	}
	r.work += int64(images.Shape[0]) // in forward passes
	if b, err = runModel(ctx, r.job.B, images, measure.SideB); err != nil {
		return nil, nil, err
	}
	r.work += int64(images.Shape[0])
	r.job.Progress(r.work, "")
	return a, b, nil
}

const batch = 32

// runModel runs n images with values in [0, 1]. s.Outputs nil: all class outputs.
func runModel(ctx context.Context, s procedure.Subject, images tensor.Tensor, side measure.Side) (*responses, error) {
	n := images.Shape[0]
	v := &responses{}
	for _, l := range s.Layers {
		v.layers, v.nonFinite = append(v.layers, tensor.New(n, tensor.Size(l.Shape))), append(v.nonFinite, map[int]error{})
	}
	classes := s.Model.Classes() > 0
	session, err := s.Model.NewSession(s.Layers, classes)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	buf, err := session.NewBuffers(min(n, batch))
	if err != nil {
		return nil, err
	}
	for at := 0; at < n; at += buf.Cap() {
		end := min(at+buf.Cap(), n)
		part, err := invert.FrameImages(s.Model, images, at, end)
		if err != nil {
			return nil, err
		}
		if err := session.Run(ctx, part, buf); err != nil {
			return nil, err
		}
		for k := range s.Layers {
			z := buf.Layer(k)
			copy(v.layers[k].Slice(at, end).Data, z.Data)
			for i := at; i < end && z.FirstNonFinite() >= 0; i++ {
				if v.layers[k].At(i).FirstNonFinite() >= 0 {
					v.nonFinite[k][i] = fmt.Errorf("model %s, layer %q: %w", s.Name, s.Layers[k].Name, &measure.NonFiniteIn{Side: side, Layer: k, Index: i})
				}
			}
		}
		if !classes {
			continue
		}
		logs, err := buf.LogProbs(s.Outputs)
		if err != nil {
			return nil, err
		}
		for i := range end - at {
			v.class = append(v.class, argmax(logs.At(i).Data))
		}
	}
	return v, nil
}

func argmax(v []float32) int { return slices.Index(v, slices.Max(v)) }
