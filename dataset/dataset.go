// Package dataset provides samples: images, audio and ready-made arrays from files and folders, and
// synthetic samples with known factors.
//
// A Source has a length, a fingerprint of its content and random access by index, so that any
// worker can read any part in any order and gets the same samples. A Frame is the size and format
// in which a model takes its inputs: the size and channels of images, the rate and length of
// waveforms. A source converts each sample to the frame when it decodes the sample.
//
// A factor is a known property of a sample, such as hue, speaker or duration. A trajectory is a
// sample with gradually changed versions of it, which are samples too. A place is a group of
// samples that trajectories connect, such as the frames of a video at one position.
//
//	OpenFolder                 JPEG, PNG, GIF, BMP, TIFF and WebP files, labelled by folder, CSV file
//	                           or WordNet synset
//	OpenCIFAR10, OpenCIFAR100  the binary version of these data sets
//	OpenIDX                    MNIST and data sets in its format, also compressed by gzip
//	OpenArrays                 arrays of images: npy, npz, safetensors or Parquet
//	OpenRawArrays              such arrays that a model takes as they are, as token ids
//	OpenShards                 images in the tar shards of a WebDataset
//	OpenParquet                encoded images in Parquet files, as Hugging Face datasets stores them
//	OpenCOCO                   images with the boxes or masks of an annotation file in COCO's format
//	WithMasks                  a folder of images with the class of each pixel
//	OpenShapes, OpenGratings   synthetic images with known factors
//	OpenScenes                 synthetic images of several figures with the class of each pixel
//	OpenTones                  synthetic audio with known factors
//	OpenAudio                  WAV and FLAC files, labelled by folder, file name or CSV file, or in
//	                           the layout of LibriSpeech. A sample is an item: a whole file, or a
//	                           piece of fixed length
//	OpenDecoded                other files of samples, labelled by folder
//	dataset/video              patches of videos, or of images under a moving camera, with
//	                           trajectories, and whole videos as sequences of frames
//	Pair                       samples of one source with ready-made transformed versions of another
//	Concat                     several sources, one after the other
//
// Limit, Shuffle, Split, Where, RandomSubset and Subset select samples of a source. MapClasses,
// Restrict and Grouped map its labels to the outputs of a model, and LabelNoise replaces some by
// wrong ones. Uncropped and Trimmed change how images are brought to a frame.
// Corrupt applies a corruption to images. ComputeFactors adds factors that are computed from the
// samples. Each returns a Source again. Read yields samples in order while it decodes others ahead.
// Close releases the files of a source.
package dataset

import (
	"context"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// NoLabel is the label of a sample that has none.
const NoLabel = measure.NoLabel

// A Sample is one input of a model with its label and factors.
type Sample struct {
	Index int    // index in the original source, before any selection or shuffle
	Name  string // for messages: a file name, or "test_batch.bin#17"
	// Image, c x h x w in [0, 1]; audio, 1 x n in [-1, 1]; or Arrays' values.
	Input    tensor.Tensor
	Waveform *Waveform // the whole waveform that Input is cut from; otherwise nil
	// Names and shapes of the ready-made arrays in Input; otherwise nil.
	Arrays      []Array
	Transformed *tensor.Tensor // transformed sample of a ready-made pair (see Pair), or nil
	// Frames are those of a sequence after the first, Input, if Frame.Frames asks for them.
	Frames []tensor.Tensor
	Label  int // index into the source's classes, or NoLabel
	// Factors of variation by name, in units that the source documents.
	Factors map[string]float64
	// Labelled boxes, or the class of each pixel; nil if there are none.
	Truth *Truth
}

// A Source is a finite, ordered set of samples. Its methods may be called by several goroutines at
// once.
type Source interface {
	// Len returns the number of samples.
	Len() int
	// At reads sample i, from 0 to Len()-1, and converts it to the frame f. A *BadSample error
	// concerns this sample only; any other error concerns the source.
	At(ctx context.Context, i int, f Frame) (Sample, error)
	// Classes returns the names of the labels in order; nil without labels.
	Classes() []string
	// Factors returns the sorted names of the factors that every sample carries; nil if there are
	// none.
	Factors() []string
	// Fingerprint returns a hexadecimal hash of everything that determines what At returns. It is
	// the same on every machine with the same data.
	Fingerprint() string
}

// metadata is what most sources know once they are open.
type metadata struct {
	classes     []string
	factors     []string // sorted
	fingerprint string
	watched     *watched // the files of the samples; nil if there are none
}

// setFingerprint sets what a digest has hashed.
func (m *metadata) setFingerprint(d digest) { m.fingerprint, m.watched = d.String(), d.files }

func (m metadata) Classes() []string   { return m.classes }
func (m metadata) Factors() []string   { return m.factors }
func (m metadata) Fingerprint() string { return m.fingerprint }

// A BadSample is the error of one sample that cannot be read, for instance of a damaged image.
type BadSample struct {
	Name string
	Err  error
}

func (e *BadSample) Error() string { return e.Name + ": " + e.Err.Error() }
func (e *BadSample) Unwrap() error { return e.Err }
