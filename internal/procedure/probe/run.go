package probe

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/tempfolder"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

type run struct {
	representation *Representation // settings: the samples, and how activations are pooled to vectors
	training       *Training       // settings of the probes; nil where nothing is trained
	job            *procedure.Job
	store          *features.Store   // representations and trained probes, kept for other jobs
	samples        *features.Samples // labels and factors (known properties) of the samples
	split          split             // into training, validation and test; empty where nothing is trained
	checkpoint     *jobCheckpoint    // results so far, from which an interrupted job goes on

	mutex sync.Mutex
	work  int64  // finished so far, in forward passes
	text  string // status, shown with the progress
}

// newRun starts a run: it extracts the clean representations of all layers, unless the store has
// them, and reads labels and factors of the samples. Unless there is an error, the caller must call
// end at the end of the run.
func newRun(ctx context.Context, j *procedure.Job, rep *Representation, t *Training) (r *run, end func(), err error) {
	r, end = &run{representation: rep, training: t, job: j, store: j.Store}, func() {}
	if r.store == nil {
		dir, remove, err := tempfolder.New("representations")
		if err != nil {
			return nil, nil, err
		}
		r.store, end = &features.Store{Dir: dir}, remove
	}
	if err = r.extract(ctx, sampleTransform{}, nil); err == nil {
		r.samples, err = r.store.Samples(ctx, r.request(sampleTransform{}))
	}
	if err == nil && t != nil {
		r.split, err = t.split(r.samples, j.Data, j.Key)
	}
	if err == nil {
		r.checkpoint, err = loadCheckpoint(j.Checkpoint, fmt.Sprintf("%d samples, %d layers", r.samples.Len(), len(j.A.Layers)))
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return r, end, nil
}

// request requests all layers that can be pooled. Its View identifies the transformation.
func (r *run) request(v sampleTransform) features.Request {
	j := r.job
	out := features.Request{Model: j.A.Model, Identity: j.A.Identity, Engine: j.Engine,
		Pool: pooling.Kind(r.representation.Pool), Data: j.Data.Fingerprint(), N: j.Data.Len(), Read: j.Read, View: v.id, Transform: v.op, Pairs: v.pairs,
		Progress: r.addWork}
	for _, i := range r.representation.layers(j) {
		out.Layers = append(out.Layers, j.A.Layers[i])
	}
	return out
}

// extract adds the transformed samples at positions of the data (nil: all) to the store, unless it
// has them.
func (r *run) extract(ctx context.Context, v sampleTransform, positions []int) error {
	request := r.request(v)
	request.Positions = positions
	tables, err := r.store.Layers(ctx, request)
	for _, t := range tables {
		t.Close()
	}
	return err
}

// open opens one layer's vectors at positions (nil: all), in at most a quarter of the job's memory.
func (r *run) open(ctx context.Context, layer tensor.Layer, v sampleTransform, positions []int) (*features.Table, error) {
	request := r.request(v)
	request.Layers, request.Positions, request.Memory = []tensor.Layer{layer}, positions, r.job.Memory/4
	tables, err := r.store.Layers(ctx, request)
	if err != nil {
		return nil, err
	}
	return tables[0], nil
}

// id tells the tables from others of the layer; it is empty for the clean vectors.
func (r *run) newInput(layer tensor.Layer, id string, tables ...*features.Table) *probeInput {
	q := r.request(sampleTransform{})
	full := fmt.Sprintf("%q %q %q %q %q %q %q %s", q.Identity, r.job.A.Model.SHA256(), q.Engine, q.Data, layer.Name, layer.Axes, q.Pool.ID(layer), id)
	return newProbeInput(full, r.samples.Positions, tables...)
}

// seed returns the seed of the s-th network of a kind of probe for a target (what it predicts). It
// depends on the job's key, but not on the transformation.
func (r *run) seed(target, kind string, s int) uint64 {
	k := r.job.Key
	return seed.Rand(k.Seed, "probe: start", k.Data, k.Trial, target, kind, s).Uint64()
}

// shuffle returns the index of the sample whose target each sample gets in the null of the s-th
// network, drawn within its part, such as the training samples.
func (r *run) shuffle(target string, s int, parts ...[]int) []int {
	k := r.job.Key
	partner := dataset.Indices(r.samples.Len())
	for n, part := range parts {
		for at, from := range seed.Rand(k.Seed, "probe: null", k.Data, k.Trial, target, s, n).Perm(len(part)) {
			partner[part[at]] = part[from]
		}
	}
	return partner
}

func (r *run) addWork(n int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.work += n
	r.job.Progress(r.work, r.text)
}

func (r *run) setStatus(text string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.text = text
	r.job.Progress(r.work, text)
}

type layerScorer func(tensor.Layer) ([]measure.Score, error)

// scoreLayers calls prepare once, and the function that it returns for each layer in order. If the
// context ends, it returns the context's error, and the run can be resumed.
func scoreLayers(ctx context.Context, j *procedure.Job, rep *Representation, t *Training, prepare func(*run) (layerScorer, error)) (out []measure.PairScore, err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			out, err = nil, ctx.Err()
		}
	}()
	r, end, err := newRun(ctx, j, rep, t)
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
		for _, s := range scores {
			out = append(out, measure.PairScore{A: i, B: i, Score: s})
		}
	}
	return out, nil
}

// ridgeParts is the number of probes that a ridge probe is trained anew for, each without one group
// of the training samples, and ridgePartsDim the largest length of vectors for which it is: each
// decomposes a matrix of that size.
const (
	ridgeParts    = 10
	ridgePartsDim = 1024
)

// seedsAndNulls returns a probe for each of the Training.Seeds, or one for ridge, and as many
// nulls, or none. parts are those of ridge that leave out training samples.
func (r *run) seedsAndNulls(p probeSpec, targetName string) (seeds, nulls, parts []*probeSpec) {
	n := r.training.Seeds
	if p.kind == Ridge {
		n = 1 // ridge has no random initial weights
	}
	for s := range n {
		one := p
		one.seed = r.seed(targetName, p.kind, s)
		one.name = fmt.Sprintf("%s %s, seed %d", p.name, p.kind, s+1)
		seeds = append(seeds, &one)
		if r.training.Nulls == NoNulls {
			continue
		}
		shuffled := p
		shuffled.seed = one.seed
		shuffled.name = fmt.Sprintf("%s %s, null, seed %d", p.name, p.kind, s+1)
		shuffled.targetSample = r.shuffle(targetName, s, p.train, p.validation)
		nulls = append(nulls, &shuffled)
	}
	if p.kind != Ridge || p.input.width() > ridgePartsDim || len(p.train) < 2*ridgeParts {
		return seeds, nulls, nil
	}
	for g := range ridgeParts {
		part := *seeds[0]
		part.name = fmt.Sprintf("%s, without part %d", part.name, g+1)
		part.train = nil
		for i, sample := range p.train {
			if i%ridgeParts != g {
				part.train = append(part.train, sample)
			}
		}
		parts = append(parts, &part)
	}
	return seeds, nulls, parts
}

// trainingWork estimates forward passes of the model on one sample: at most 30 epochs, and three
// forward passes of the probe per sample. A forward pass of the model is taken for as many
// multiplications as it has parameters, plus 25 for each byte of activations. Ridge counts as one.
func (r *run) trainingWork(p *probeSpec) int64 {
	return trainingWork(r.job, r.training, p.kind, p.hidden, p.input.width(), p.outputs(), len(p.train))
}

// trainingWork takes the probe's in inputs, out outputs and n training samples.
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
	forward := 25*float64(j.A.Model.ActivationBytes()) + float64(j.A.Model.Parameters())
	return 1 + int64(3*weights*float64(n)*float64(min(t.Epochs, 30))/forward)
}
