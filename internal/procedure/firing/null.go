package firing

import (
	"cmp"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
)

// A trackIndex states which samples lie on one track. A track is a group of samples whose
// trajectories have images in common, such as the frames that a video shows at one position of a
// scene. (dataset.Places calls this group a place; here a place is a sample's position in the
// random order.) A unit often fires (exceeds its threshold) on the trajectories of all samples of a
// track, or of none.
type trackIndex struct {
	of []int32 // number of the track of the sample at each place; nil: every sample has its own track
}

// own: the trajectories are those of the data; otherwise each sample has a track of its own.
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

func (t trackIndex) track(place int) int32 {
	if t.of == nil {
		return int32(place)
	}
	return t.of[place]
}

// nullInputs are the random inputs that replace the references in the null. A run here is a
// sequence of inputs that follow one another on one track, not the type run.
type nullInputs struct {
	places []int // of the inputs of all runs, one run after another
	first  []int // index in places of the first input of each run, then the number of all inputs
}

// maxNulls is the largest number of runs of a null, which bounds the additional trajectories.
const maxNulls = 100

// drawNulls draws a run on each of up to maxNulls tracks, as long as a unit's references, or a
// whole shorter track. complete has the places with complete trajectories.
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

// replace returns, for each reference of a unit, the index in places of its random input.
// References of one track are replaced by inputs of one run, so that trajectories overlap as those
// of the references do. The result is in dst, which may be reallocated.
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

// hashIndex replaces a random number below n by a hash, so that none need to be stored.
func hashIndex(unit, slot, n int) int {
	return int((hash(uint64(unit), uint64(slot)) >> 32) * uint64(n) >> 32)
}

// hash is the mixing function of SplitMix64.
func hash(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + (b+1)*0xd1b54a32d192ed03
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
