package firing

import (
	"fmt"

	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A chunk is some units of a layer, from lo to hi.
type chunk struct{ layer, lo, hi int }

func (c chunk) count() int { return c.hi - c.lo }

// A group is what is worked on together: chunks whose gatherings fit the memory. Each group takes passes of its own over the data.
type group []chunk

// layers are the indices of the layers that the group reads.
func (g group) layers() []int {
	var out []int
	for _, c := range g {
		if len(out) == 0 || out[len(out)-1] != c.layer {
			out = append(out, c.layer)
		}
	}
	return out
}

// groups deals the units of all layers to groups of at most so many units, in order.
func groups(counts []int, most int) []group {
	var out []group
	room := 0
	for layer, n := range counts {
		for lo := 0; lo < n; {
			if room == 0 {
				out = append(out, nil)
				room = most
			}
			hi := min(n, lo+room)
			last := len(out) - 1
			out[last] = append(out[last], chunk{layer, lo, hi})
			room -= hi - lo
			lo = hi
		}
	}
	return out
}

// A layout is what the work on a job consists of. It depends on the job's memory, and scores do not depend on it.
type layout struct {
	rank       int // k
	references int
	paths      []path
	groups     []group
	batch      int // images in a run of the engine
}

// minimum is how many inputs a global rate takes: below, the strongest alone would be more.
func (s Settings) minimum() int {
	n := int(1 / s.Rate)
	for float64(n)*s.Rate < 1-1e-9 {
		n++
	}
	return n
}

// layOut plans the job.
func (m *firing) layOut(j *procedure.Job) layout {
	l := layout{rank: Rank(j.Data.Len(), m.settings.Rate), references: m.referencesOf(j), paths: m.pathsOf(j), batch: batchFor(j)}
	counts := make([]int, len(j.A.Layers))
	for i, layer := range j.A.Layers {
		counts[i] = newUnits(layer, m.settings, j.Key.Seed).count()
	}
	most := max(1, int(j.Memory/m.unitBytes(j, l)))
	if j.Memory == 0 {
		most = 1 << 30
	}
	l.groups = groups(counts, most)
	return l
}

// unitBytes is the memory that the work on a unit takes at its height.
func (m *firing) unitBytes(j *procedure.Job, l layout) int64 {
	bytes := 2*topsBytes(l.rank, l.references, m.settings.tolerance()) + int64(2*2*2*4*l.references) // both signs; the lists of who follows which reference
	for _, p := range l.paths {
		bytes = max(bytes, m.matrixBytes(p))
	}
	if m.settings.also(NormalThreshold) {
		bytes += 16
	}
	if m.settings.also(MutualInformation) {
		bytes += int64(2 * 2 * 4 * len(j.Data.Classes()))
	}
	return bytes
}

// batchFor is how many images the engine runs at once: as many as a quarter of the memory holds the layers of, or mostActivations, 32 at most.
func batchFor(j *procedure.Job) int {
	var bytes int64
	for _, l := range j.A.Layers {
		bytes += 4 * int64(tensor.Size(l.Shape))
	}
	if j.Memory == 0 {
		return mostBatch
	}
	return int(max(1, min(mostBatch, min(j.Memory/4, mostActivations)/max(1, bytes))))
}

const (
	mostBatch       = 32
	mostActivations = 64 << 20 // bytes of the layers of a batch; the engine takes as much again. More images at once are no faster.
)

// whyNot tells why a job cannot be done, "" where it can.
func (m *firing) whyNot(j *procedure.Job) string {
	least := m.settings.minimum()
	switch {
	case len(j.A.Layers) == 0:
		return "the study chooses no layers"
	case len(m.pathsOf(j)) == 0:
		return errNoTrajectory.Error()
	case j.Data.Len() < least:
		return fmt.Sprintf("%d inputs are too few for a global rate of %v: it takes %d", j.Data.Len(), m.settings.Rate, least)
	}
	for _, p := range m.pathsOf(j) {
		if len(p.amounts) < 2 {
			return "the transformation has no value but the identity, and a trajectory wants another"
		}
	}
	return ""
}

// forwards estimates how many samples the engine will run.
func (m *firing) forwards(j *procedure.Job) int64 {
	l := m.layOut(j)
	var once int64
	n := int64(j.Data.Len())
	once += n
	if sketched(l.rank, m.settings.tolerance()) {
		once += n
	}
	for _, p := range l.paths {
		once += int64(p.total)
		if p.whole { // but for the images that the thresholds' pass has seen
			once -= max(0, n-nullPlaces)
		}
		if m.wantsMatrix() && p.matrix {
			once += n * int64(len(p.amounts))
		}
	}
	if m.settings.also(MutualInformation) {
		once += n
	}
	return once * int64(len(l.groups))
}

// layersOf are the layers that a group reads, in order.
func layersOf(j *procedure.Job, g group) []onnx.Layer {
	var out []onnx.Layer
	for _, i := range g.layers() {
		out = append(out, j.A.Layers[i])
	}
	return out
}
