package firing

import (
	"fmt"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/tensor"
)

// A chunk is the units lo to hi (exclusive) of one layer.
type chunk struct{ layer, lo, hi int }

func (c chunk) count() int { return c.hi - c.lo }

// A group is chunks whose accumulators fit in memory together. Each group needs its own passes.
type group []chunk

func (g group) layers() []int {
	var out []int
	for _, c := range g {
		if len(out) == 0 || out[len(out)-1] != c.layer {
			out = append(out, c.layer)
		}
	}
	return out
}

// groups divides units, in order, into groups of at most limit. counts is by layer.
func groups(counts []int, limit int) []group {
	var out []group
	free := 0 // units that the last group has room for
	for layer, n := range counts {
		for lo := 0; lo < n; {
			if free == 0 {
				out = append(out, nil)
				free = limit
			}
			hi := min(n, lo+free)
			last := len(out) - 1
			out[last] = append(out[last], chunk{layer, lo, hi})
			free -= hi - lo
			lo = hi
		}
	}
	return out
}

// A layout divides the work of a job. It depends on the memory, and scores do not depend on it.
// amounts has an element for each image of a trajectory, and total counts the images of all.
type layout struct {
	rank         int          // k: the threshold of a unit is its k-th largest value
	references   int          // number of reference stimuli of a unit
	trajectories []trajectory // the kinds of trajectory, such as phase and orientation of gratings
	groups       []group      // of units
	batch        int          // images in one run of the model
}

// minInputs returns the smallest number of inputs at which a unit that fires at one does not exceed
// the rate.
func (s Settings) minInputs() int {
	n := int(1 / s.Rate)
	for float64(n)*s.Rate < 1-1e-9 { // below 1 by more than rounding
		n++
	}
	return n
}

func (m *firing) newLayout(j *procedure.Job) layout {
	l := layout{rank: rankOf(j.Data.Len(), m.settings.Rate), references: m.referencesOf(j), trajectories: m.trajectoriesOf(j), batch: batchFor(j)}
	counts := make([]int, len(j.A.Layers))
	for i, layer := range j.A.Layers {
		counts[i] = newUnitSet(layer, m.settings, j.Key.Seed).count()
	}
	limit := max(1, int(j.Memory/m.unitBytes(j, l)))
	if j.Memory == 0 { // no bound
		limit = 1 << 30
	}
	l.groups = groups(counts, limit)
	return l
}

// unitBytes returns the peak memory for one unit, in bytes.
func (m *firing) unitBytes(j *procedure.Job, l layout) int64 {
	// The largest values for both signs. Then the assignments to references (see referenceUnits),
	// of 4 bytes: for both signs, references and random inputs, and at most two kinds of
	// trajectory.
	bytes := 2*topValuesBytes(l.rank, l.references, m.settings.tolerance()) + int64(2*2*2*4*l.references)
	for _, p := range l.trajectories {
		bytes = max(bytes, m.fullStatsBytes(p)) // statistics over the trajectories of all samples
	}
	if m.settings.also(NormalThreshold) {
		bytes += 16 // two float64: the mean, and the sum of squared deviations from it
	}
	if m.settings.also(MutualInformation) { // int32 for both signs, labels and shuffled labels
		bytes += int64(2 * 2 * 4 * len(j.Data.Classes()))
	}
	return bytes
}

// batchFor bounds the activations by a quarter of the memory and by maxActivationBytes.
func batchFor(j *procedure.Job) int {
	var bytes int64
	for _, l := range j.A.Layers {
		bytes += 4 * int64(tensor.Size(l.Shape))
	}
	if j.Memory == 0 {
		return maxBatch
	}
	return int(max(1, min(maxBatch, min(j.Memory/4, maxActivationBytes)/max(1, bytes))))
}

const (
	maxBatch = 32
	// ONNX Runtime needs maxActivationBytes again, and larger batches are not faster.
	maxActivationBytes = 64 << 20
)

func (m *firing) skipReason(j *procedure.Job) string {
	least := m.settings.minInputs()
	switch {
	case len(j.A.Layers) == 0:
		return "the study chooses no layers"
	case len(m.trajectoriesOf(j)) == 0:
		return errNoTrajectory.Error()
	case j.Data.Len() < least:
		return fmt.Sprintf("%d inputs are too few for a global rate of %v: at least %d are needed", j.Data.Len(), m.settings.Rate, least)
	}
	for _, p := range m.trajectoriesOf(j) {
		if len(p.amounts) < 2 {
			return "the transformation has no value but the identity, and a trajectory needs another"
		}
	}
	return ""
}

func (m *firing) forwardPasses(j *procedure.Job) int64 {
	l := m.newLayout(j)
	var once int64
	n := int64(j.Data.Len())
	once += n
	if sketched(l.rank, m.settings.tolerance()) { // approximate thresholds need a second pass
		once += n
	}
	for _, p := range l.trajectories {
		once += int64(p.total)
		// The pass for thresholds has run the references themselves. Those that are random inputs
		// of the null run again.
		if p.exclusive { // no image is on two trajectories
			once -= max(0, n-maxNulls)
		}
		// Trajectories of all samples.
		if m.needsFullTrajectories() && p.tmeasures {
			once += n * int64(len(p.amounts))
		}
	}
	if m.settings.also(MutualInformation) {
		once += n
	}
	return once * int64(len(l.groups))
}

func layersOf(j *procedure.Job, g group) []tensor.Layer {
	var out []tensor.Layer
	for _, i := range g.layers() {
		out = append(out, j.A.Layers[i])
	}
	return out
}
