package firing

import (
	"cmp"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
)

// A trackIndex states which samples lie on one track: samples whose trajectories have images in
// common, such as the frames that a video shows at one position of a scene. A unit often fires on
// the trajectories of all of them, or of none.
type trackIndex struct {
	of []int32 // number of the track of the sample at each place; nil: every sample has its own
}

// newTrackIndex returns the tracks of data. own reports whether the trajectories are those of the
// data; else they come from a transformation, and each sample has a track of its own.
func newTrackIndex(data dataset.Source, own bool) trackIndex {
	if !own {
		return trackIndex{}
	}
	tracks := dataset.Places(data)
	if tracks == nil {
		return trackIndex{}
	}
	t := trackIndex{make([]int32, data.Len())}
	for k, track := range tracks {
		for _, place := range track {
			t.of[place] = int32(k)
		}
	}
	return t
}

// track returns the number of the track of the sample at a place.
func (t trackIndex) track(place int) int32 {
	if t.of == nil {
		return int32(place)
	}
	return t.of[place]
}

// nullInputs are the inputs that are drawn at random for the null, in runs: those of a run follow
// one another on one track.
type nullInputs struct {
	places []int // of all runs
	first  []int // index of the first input of each run, and the number of all inputs
}

// maxNulls is the largest number of runs of a null. It bounds the number of additional
// trajectories.
const maxNulls = 100

// drawNulls draws the inputs of the null from the places of samples with complete trajectories: a
// run on each of up to maxNulls tracks, of as many inputs as a unit has references or, on a shorter
// track, of all.
func (r *run) drawNulls(complete []int) nullInputs {
	k := r.job.Key
	random := seed.Rand(k.Seed, "firing: null", k.Data, k.Transform, k.Trial)
	tracks := r.tracks.divide(complete)
	out := nullInputs{first: []int{0}}
	for _, at := range random.Perm(len(tracks))[:min(maxNulls, len(tracks))] {
		track := tracks[at]
		slices.SortFunc(track, func(a, b int) int { return cmp.Compare(r.index[a], r.index[b]) }) // frames of a video in order
		n := min(r.references, len(track))
		from := random.IntN(len(track) - n + 1)
		out.places = append(out.places, track[from:from+n]...)
		out.first = append(out.first, len(out.places))
	}
	return out
}

// divide returns places by track.
func (t trackIndex) divide(places []int) [][]int {
	var tracks [][]int
	at := map[int32]int{}
	for i, place := range places {
		if t.of == nil {
			tracks = append(tracks, places[i:i+1])
			continue
		}
		track := t.of[place]
		if _, ok := at[track]; !ok {
			at[track] = len(tracks)
			tracks = append(tracks, nil)
		}
		tracks[at[track]] = append(tracks[at[track]], place)
	}
	return tracks
}

// replace returns, for each reference of a unit, the index in places of the random input that
// replaces it for the null. tracks has the tracks of the references. Those of one track are
// replaced by inputs of one run, so that the null has as many inputs in common as the references.
func (n nullInputs) replace(dst []int, unit int, tracks []int32) []int {
	dst = dst[:0]
	for slot, track := range tracks {
		firstOfTrack := slices.Index(tracks, track)
		run := hashIndex(unit, firstOfTrack, len(n.first)-1)
		earlier := 0 // references of the same track before this one
		for _, t := range tracks[firstOfTrack:slot] {
			if t == track {
				earlier++
			}
		}
		from, to := n.first[run], n.first[run+1]
		dst = append(dst, from+earlier%(to-from))
	}
	return dst
}

// hashIndex returns an index below n that is drawn for reference slot of a unit. It is a hash, so
// it needs no memory.
func hashIndex(unit, slot, n int) int {
	return int((hash(uint64(unit), uint64(slot)) >> 32) * uint64(n) >> 32)
}

// hash hashes two numbers (the mixing function of SplitMix64).
func hash(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + (b+1)*0xd1b54a32d192ed03
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
