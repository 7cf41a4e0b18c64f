package probe

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/noether-ml/noether/features"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
)

// A run is the work on one job.
type run struct {
	representation *Representation
	training       *Training // nil where nothing is trained
	job            *procedure.Job
	store          *features.Store
	samples        *features.Samples
	split          split
	kept           *kept

	mutex sync.Mutex
	work  int64 // done
	text  string
}

// begin extracts the clean representations of all layers, unless the store has them, and learns what is known of the samples. The
// function that it returns ends the run.
func begin(ctx context.Context, j *procedure.Job, rep *Representation, t *Training) (r *run, end func(), err error) {
	r, end = &run{representation: rep, training: t, job: j, store: j.Store}, func() {}
	if r.store == nil {
		dir, err := os.MkdirTemp("", "noether-representations-*")
		if err != nil {
			return nil, nil, fmt.Errorf("there is no place for representations: %w", err)
		}
		r.store, end = &features.Store{Dir: dir}, func() { os.RemoveAll(dir) }
	}
	if err = r.extract(ctx, view{}, nil); err == nil {
		r.samples, err = r.store.Samples(ctx, r.request(view{}))
	}
	if err == nil && t != nil {
		r.split, err = t.split(r.samples, j.Data, j.Key)
	}
	if err == nil {
		r.kept, err = readKept(j.Checkpoint, fmt.Sprintf("%d samples, %d layers", r.samples.Len(), len(j.A.Layers)))
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return r, end, nil
}

// request is for all layers that can be pooled, under a view.
func (r *run) request(v view) features.Request {
	j := r.job
	out := features.Request{Model: j.A.Model, Identity: j.A.Identity, Engine: strings.TrimSpace(j.Runtime.Version() + " " + j.Device),
		Pool: features.Pooling(r.representation.Pool), Data: j.Data.Fingerprint(), N: j.Data.Len(), Read: j.Read, View: v.id, Move: v.move,
		Progress: r.worked}
	for _, i := range r.representation.layers(j) {
		out.Layers = append(out.Layers, j.A.Layers[i])
	}
	return out
}

// extract sees to it that the store has the representations of all layers, of some samples (by place; nil: all).
func (r *run) extract(ctx context.Context, v view, places []int) error {
	request := r.request(v)
	request.Places = places
	tables, err := r.store.Layers(ctx, request)
	for _, t := range tables {
		t.Close()
	}
	return err
}

// open opens the representation of one layer.
func (r *run) open(ctx context.Context, layer onnx.Layer, v view, places []int) (*features.Table, error) {
	request := r.request(v)
	request.Layers, request.Places, request.Memory = []onnx.Layer{layer}, places, r.job.Memory/4
	tables, err := r.store.Layers(ctx, request)
	if err != nil {
		return nil, err
	}
	return tables[0], nil
}

// features are those of tables of a layer. Which these are follows from id.
func (r *run) features(layer onnx.Layer, id string, tables ...*features.Table) *probeInput {
	q := r.request(view{})
	full := fmt.Sprintf("%q %q %q %q %q %q %q %s", q.Identity, r.job.A.Model.SHA256(), q.Engine, q.Data, layer.Name, layer.Axes, q.Pool, id)
	return newProbeInput(full, r.samples.Places, tables...)
}

// seed is that of the s-th network for some purpose. It does not depend on the transformation.
func (r *run) seed(what, kind string, s int) uint64 {
	k := r.job.Key
	return seed.Rand(k.Seed, "probe: start", k.Data, k.Trial, what, kind, s).Uint64()
}

// shuffle pairs each sample with the target of another one of its part.
func (r *run) shuffle(what string, parts ...[]int) []int {
	k := r.job.Key
	partner := make([]int, r.samples.Len())
	for i := range partner {
		partner[i] = i
	}
	for n, part := range parts {
		for at, from := range seed.Rand(k.Seed, "probe: null", k.Data, k.Trial, what, n).Perm(len(part)) {
			partner[part[at]] = part[from]
		}
	}
	return partner
}

// worked notes work that is done.
func (r *run) worked(n int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.work += n
	r.job.Progress(r.work, r.text)
}

// note shows what is being done.
func (r *run) note(text string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.text = text
	r.job.Progress(r.work, text)
}

// A layerScorer is what a measure does at one layer.
type layerScorer func(onnx.Layer) ([]measure.Score, error)

// layerwise begins a job, prepares what its layers have in common, and scores them one after the other. Of a context that ended it
// returns the context's error, which says that the work can go on another time.
func layerwise(ctx context.Context, j *procedure.Job, rep *Representation, t *Training, prepare func(*run) (layerScorer, error)) (out []measure.PairScore, err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			out, err = nil, ctx.Err()
		}
	}()
	r, end, err := begin(ctx, j, rep, t)
	if err != nil {
		return nil, err
	}
	defer end()
	score, err := prepare(r)
	if err != nil {
		return nil, err
	}
	for _, i := range rep.layers(j) {
		scores, err := score(j.A.Layers[i])
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", j.A.Layers[i].Name, err)
		}
		out = append(out, of(i, scores)...)
	}
	return out, nil
}

// of are scores of a layer.
func of(layer int, scores []measure.Score) []measure.PairScore {
	out := make([]measure.PairScore, len(scores))
	for i, s := range scores {
		out[i] = measure.PairScore{A: layer, B: layer, Score: s}
	}
	return out
}

// trials are a problem for each seed, and one with shuffled targets: what stands in the place of a null.
func (r *run) trials(p problem, what string) (seeds []*problem, null *problem) {
	n := r.training.Seeds
	if p.kind == Ridge {
		n = 1 // nothing in it is drawn
	}
	for s := range n {
		one := p
		one.seed = r.seed(what, p.kind, s)
		one.name = fmt.Sprintf("%s %s, seed %d", p.name, p.kind, s+1)
		seeds = append(seeds, &one)
	}
	shuffled := p
	shuffled.seed = r.seed(what, p.kind, 0)
	shuffled.name = fmt.Sprintf("%s %s, null", p.name, p.kind)
	shuffled.partner = r.shuffle(what, p.train, p.validation)
	return seeds, &shuffled
}

// trainingWork is what the training of a probe counts, in forward passes of the model: it is taken to run for 30 epochs, and a
// forward pass to take a hundred multiplications for each number that it computes.
func (r *run) trainingWork(p *problem) int64 {
	return trainingWork(r.job, r.training, p.kind, p.hidden, p.in.width(), p.outputs(), len(p.train))
}

func trainingWork(j *procedure.Job, t *Training, kind string, hidden []int, in, out, n int) int64 {
	if kind == Ridge {
		return 1
	}
	sizes := []int{in}
	if kind == MLP {
		sizes = append(sizes, hidden...)
	}
	var weights float64
	for i, next := range append(slices.Clone(sizes[1:]), out) {
		weights += float64(sizes[i]) * float64(next)
	}
	forward := 25*float64(j.A.Model.ActivationBytes()) + float64(j.A.Model.Graph().Parameters())
	return 1 + int64(3*weights*float64(n)*float64(min(t.Epochs, 30))/forward)
}
