// Package dataset yields samples: images from files, arrays and folders, and synthetic ones whose factors are known.
//
// A Source has a length, a fingerprint of its content and random access by index, so that any part of it can be
// read by any worker in any order and is the same sample each time. A Frame says how an image is brought to
// the size that a model takes; sources apply it while decoding.
//
//	OpenFolder                 JPEG, PNG, GIF, BMP, TIFF and WebP files: a class a folder, by synset, by a CSV file, unlabelled
//	OpenCIFAR10, OpenCIFAR100  the binary version
//	OpenIDX                    MNIST and its kin, .gz or not
//	OpenArrays                 npy and npz arrays
//	OpenShapes, OpenGratings   drawn on the fly, with known factors
//	OpenTones                  played on the fly, with known factors
//	OpenSounds                 WAV and FLAC files: a class a folder, by a pattern of names, by a CSV file, LibriSpeech
//	dataset/video              patches of videos, or of images under a moving camera, with trajectories over time
//	Pair                       two sources whose samples somebody else made into pairs
//	Join                       several sources, one behind the other
//
// Limit, Shuffle, Split, Where, Draw and Pick choose samples of a source, MapClasses and Restrict bring its labels to the outputs of a model;
// Measure gives samples factors that are computed from them; each returns a Source again. Read goes through samples in order while others are decoded ahead. Close
// releases the files of a source.
package dataset

import (
	"context"

	"github.com/noether-ml/noether/tensor"
)

// NoLabel is the label of a sample that has none.
const NoLabel = -1

// A Sample is one input with what is known about it.
type Sample struct {
	Index    int                // its place in the source's own order: stable under limit, shuffle and split
	Name     string             // for people: a file name, or "test_batch.bin#17"
	Input    tensor.Tensor      // an image, c x h x w, values in [0, 1], or a sound, 1 x n, values in [-1, 1]; framed
	Waveform *Waveform          // of a sound: all of it, of which Input is a part; nil for images
	Moved    *tensor.Tensor     // the other half of a ready-made pair, framed alike; nil elsewhere
	Label    int                // index into the source's classes, or NoLabel
	Factors  map[string]float64 // named factors of variation, in the units that the source documents
}

// A Source is a finite, ordered set of samples. Its methods may be called by several goroutines at once.
type Source interface {
	// Len is the number of samples.
	Len() int
	// At reads sample i of 0..Len()-1 and brings it to the frame. An error that satisfies
	// errors.As(err, *BadSample) concerns this sample alone; any other one concerns the source.
	At(ctx context.Context, i int, f Frame) (Sample, error)
	// Classes names the labels in order; nil where samples have none.
	Classes() []string
	// Factors names the factors of variation that every sample carries, sorted; nil where there are none.
	Factors() []string
	// Fingerprint is a hash over everything that decides what At returns, in hexadecimal. It is the same on
	// every machine that holds the same data.
	Fingerprint() string
}

// A BadSample is the error of one sample that cannot be read: an image that does not decode, say.
type BadSample struct {
	Name string
	Err  error
}

func (e *BadSample) Error() string { return e.Name + ": " + e.Err.Error() }
func (e *BadSample) Unwrap() error { return e.Err }
