package video

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/tensor"
)

// A Source is a dataset.Source of patches, small squares cut from the frames of videos, which are
// reduced in size before. They are in the order of scene, frame and place (the position of one
// patch in all frames of a scene). Samples have no label. Their factors are scene, frame (from 0 in
// its scene), x and y (the patch's top left corner, in pixels of the reduced frame).
type Source struct {
	patches     Patches
	fingerprint string
	scenes      []scene
	spool       *spool // the temporary file of the patches
	still       bool   // one frame of each image: no trajectories (a patch in successive frames)
}

// A scene is a sequence of frames without a cut.
type scene struct {
	name    string // name of the file or the image
	first   int    // index of the first sample
	frames  int    // number of frames
	places  []place
	extents []float64 // of each frame: 0.99 quantile of |values|; nil: not whitened
	scales  []float64 // of each frame: its extent, smoothed over time; nil: not whitened
}

// Len returns the number of patches: the sum of frames times places over the scenes.
func (s *Source) Len() int { return s.spool.n }

// Classes returns nil: patches have no labels.
func (s *Source) Classes() []string { return nil }
func (s *Source) Factors() []string { return []string{"frame", "scene", "x", "y"} }

// Fingerprint returns a hash of the options and of the files' names and bytes or, for images under
// a simulated camera, of the fingerprint of the images.
func (s *Source) Fingerprint() string { return s.fingerprint }

// Close removes the temporary file.
func (s *Source) Close() error { return s.spool.close() }

// Amounts implements dataset.Trajectories. It returns the time offsets -Reach to Reach, in frames,
// or nil for stills. Reach is an option: the frames before and after a patch in its trajectory.
func (s *Source) Amounts() []float64 {
	if s.still {
		return nil
	}
	out := make([]float64, 0, 2*s.patches.Reach+1)
	for g := -s.patches.Reach; g <= s.patches.Reach; g++ {
		out = append(out, float64(g))
	}
	return out
}

// Trajectory implements dataset.Trajectories. It returns nil for stills, and where fewer than Reach
// frames of the scene precede or follow that of sample i.
func (s *Source) Trajectory(i int) []int {
	sc, frame, _ := s.locate(i)
	reach := s.patches.Reach
	if s.still || frame < reach || frame+reach >= sc.frames {
		return nil
	}
	out := make([]int, 0, 2*reach+1)
	for g := -reach; g <= reach; g++ {
		out = append(out, i+g*len(sc.places))
	}
	return out
}

// locate returns the scene, frame and place of a sample.
func (s *Source) locate(i int) (sc *scene, frame int, at place) {
	k := sort.Search(len(s.scenes), func(k int) bool { return s.scenes[k].first > i }) - 1
	sc = &s.scenes[k]
	return sc, (i - sc.first) / len(sc.places), sc.places[(i-sc.first)%len(sc.places)]
}

func (s *Source) Describe(i int) dataset.Sample {
	sc, frame, at := s.locate(i)
	k := slices.IndexFunc(s.scenes, func(o scene) bool { return o.first == sc.first })
	return dataset.Sample{
		Index:   i,
		Name:    fmt.Sprintf("%s#%d.%d@%d,%d", sc.name, k, frame, at.x, at.y),
		Label:   dataset.NoLabel,
		Factors: map[string]float64{"scene": float64(k), "frame": float64(frame), "x": float64(at.x), "y": float64(at.y)},
	}
}

// At reads patch i and brings it to the size and the channels of f.
func (s *Source) At(ctx context.Context, i int, f dataset.Frame) (dataset.Sample, error) {
	if i < 0 || i >= s.Len() {
		return dataset.Sample{}, fmt.Errorf("video: there is no sample %d: they are numbered 0 to %d", i, s.Len()-1)
	}
	if err := ctx.Err(); err != nil {
		return dataset.Sample{}, err
	}
	sample := s.Describe(i)
	patch := tensor.New(s.patches.Channels, s.patches.Size, s.patches.Size)
	if err := s.spool.read(i, patch.Data); err != nil {
		return sample, err
	}
	if sc, frame, _ := s.locate(i); sc.scales != nil {
		for j, w := range patch.Data {
			patch.Data[j] = scaled(w, sc.scales[frame]) // from -scale..scale to 0..1, clipped
		}
	}
	var err error
	sample.Input, err = f.Tensor(patch)
	return sample, err
}
