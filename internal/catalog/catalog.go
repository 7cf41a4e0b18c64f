// Package catalog lists the measures, transformations, kinds of data and engines that study files
// can name, and reads study files with them. To add one, write its package and add a line here (of
// an engine also its key in package spec). Package transform lists the transformations, for
// programs that read no study files.
package catalog

import (
	"github.com/noether-ml/noether/internal/functions"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/firing"
	"github.com/noether-ml/noether/internal/procedure/flips"
	"github.com/noether-ml/noether/internal/procedure/lie"
	"github.com/noether-ml/noether/internal/procedure/probe"
	"github.com/noether-ml/noether/internal/procedure/robust"
	"github.com/noether-ml/noether/internal/procedure/stir"
	"github.com/noether-ml/noether/internal/procedure/stitching"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/measure/distance"
	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/measure/latent"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/measure/seis"
	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/transform"
)

// Lists returns what a study file can name.
func Lists() spec.Lists {
	return spec.Lists{Measures: Measures(), Transforms: Transforms(), Data: Data(), Engines: Engines()}
}

// Measures returns the measures, in the order of reports.
func Measures() []spec.Family {
	return []spec.Family{
		family(prediction.AccuracyDescriptor(), withoutError(prediction.Accuracy)),
		family(prediction.EffectiveInvarianceDescriptor(), withoutError(prediction.EffectiveInvariance)),
		family(prediction.DivergenceDescriptor(), withoutError(prediction.Divergence)),
		family(prediction.ModelAgreementDescriptor(), withoutError(prediction.ModelAgreement)),
		family(seis.Descriptor(), withoutError(seis.New)),
		family(distance.Descriptor(), withoutError(distance.New)),
		family(equivariance.Descriptor(), withoutError(equivariance.New)),
		family(dense.Descriptor(), withoutError(dense.New)),
		family(dense.AccuracyDescriptor(), withoutError(func(struct{}) measure.Measure { return dense.Accuracy() })),
		family(dense.AgreementDescriptor(), withoutError(func(struct{}) measure.Measure { return dense.Agreement() })),
		family(lie.Descriptor(), lie.New),
		family(latent.Descriptor(), latent.New),
		family(similarity.GeometryDescriptor(), similarity.NewGeometry),
		family(similarity.Descriptor(), similarity.New),
		family(stir.Descriptor(), stir.New),
		family(stitching.Descriptor(), stitching.New),
		family(firing.Descriptor(), firing.New),
		family(probe.InformativenessDescriptor(), probe.Informativeness),
		family(probe.ParameterEquivarianceDescriptor(), probe.ParameterEquivariance),
		family(probe.RepresentationEquivarianceDescriptor(), probe.RepresentationEquivariance),
		family(probe.InvarianceDescriptor(), probe.Invariance),
		family(probe.RetrievalDescriptor(), probe.Retrieval),
		family(probe.ConfoundingDescriptor(), probe.Confounding),
		family(probe.DisentanglementDescriptor(), probe.Disentanglement),
		family(probe.CodesDescriptor(), probe.Codes),
		family(probe.LiDARDescriptor(), probe.LiDAR),
		family(robust.Descriptor(), robust.New),
		family(flips.Descriptor(), flips.New),
		family(functions.MeasureDescriptor(), functions.Measure),
		family(functions.SetDescriptor(), functions.SetMeasure),
	}
}

// Transforms returns the kinds of transformations.
func Transforms() []transform.Kind { return append(transform.Kinds(), functions.Transformation()) }

// Data returns the kinds of data.
func Data() []spec.DataKind {
	return []spec.DataKind{
		open.Kind[open.CIFAR10]("cifar10", "CIFAR-10 in its binary layout: a file, several files, or the folder"),
		open.Kind[open.CIFAR100]("cifar100", "CIFAR-100 in its binary layout"),
		open.Kind[open.IDX]("idx", "MNIST and data sets in its format: the file of images, also compressed (.gz)"),
		open.Kind[open.Sound]("sound", "a folder of WAV and FLAC files, labelled by folders, by a pattern of their names, or by a CSV"),
		open.Kind[open.LibriSpeech]("librispeech", "LibriSpeech as published: SPEAKER/CHAPTER/*.flac with transcripts, which give the factor words-per-second"),
		open.Kind[open.Images]("images", "a folder of images or its archive; labels come from a folder for each class, from synset names, or from a CSV file"),
		open.Kind[open.COCO]("coco", "images with labelled boxes or masks, in COCO's format"),
		open.Kind[open.Arrays]("arrays", "npy, npz, safetensors or Parquet: images, or with layout: raw the inputs of the model, such as token ids"),
		open.Kind[open.Shards]("webdataset", "tar shards of a WebDataset: files, ranges such as val-{000..049}.tar, patterns, URLs, or a folder of them"),
		open.Kind[open.Parquet]("parquet", "Parquet files with a column of encoded images, as Hugging Face datasets stores them"),
		open.Kind[open.Pairs]("pairs", "ready-made pairs of clean and transformed images or arrays, instead of a transformation"),
		open.Kind[open.Shapes]("shapes", "synthetic figures with known factors"),
		open.Kind[open.Tones]("tones", "synthetic audio with known factors"),
		open.Kind[open.Gratings]("gratings", "sinusoidal gratings of Goodfellow et al. 2009"),
		open.Kind[open.Video]("video", "patches of video files, animated GIFs or folders of frames, with trajectories over time"),
		open.Kind[open.Sequences]("sequences", "a folder of videos whose frames are sequences of images, as in ImageNet-P, labelled by folders"),
		open.Kind[open.Camera]("camera", "patches of still images under a simulated moving camera, with trajectories over time"),
	}
}

// Descriptors returns the descriptors of all measures.
func Descriptors() []measure.Descriptor {
	var out []measure.Descriptor
	for _, f := range Measures() {
		out = append(out, f.Descriptor)
	}
	return out
}

// Load reads a study file. vars are looked up before the environment for ${NAME} in the file.
func Load(path string, vars map[string]string) (*spec.Study, error) {
	return spec.Load(path, vars, Lists())
}

// Parse reads the text of a study file. Relative paths are relative to the folder of path, which
// errors name. vars are as for Load.
func Parse(path string, data []byte, vars map[string]string) (*spec.Study, error) {
	return spec.Parse(path, data, vars, Lists())
}

// Schema returns the JSON Schema of study files.
func Schema() ([]byte, error) { return spec.Schema(Lists()) }

// family returns the Family of a measure with the given descriptor and constructor.
func family[S any, M measure.Method](d measure.Descriptor, create func(S) (M, error)) spec.Family {
	return spec.NewFamily(d, create, PairsOf)
}

// withoutError adapts a constructor that cannot fail.
func withoutError[S any, M measure.Method](create func(S) M) func(S) (M, error) {
	return func(s S) (M, error) { return create(s), nil }
}

// PairsOf returns how a method compares models.
func PairsOf(m measure.Method) spec.Pairs {
	switch m := m.(type) {
	case measure.Comparison:
		return spec.Pairs{Use: spec.PairsOptional, Directional: m.Directional(), Layers: measure.PairGrid}
	case procedure.Procedure:
		out := spec.Pairs{Directional: m.Needs().Directional, Layers: m.Needs().Layers}
		if m.Needs().Pair {
			out.Use = spec.PairsRequired
		}
		return out
	case measure.Measure:
		out := spec.Pairs{Layers: measure.PairGrid}
		switch {
		case m.Needs().OtherModel:
			out.Use = spec.PairsOfPredictions
		case m.Needs().OtherLayers:
			out.Use, out.Layers = spec.PairsOptional, measure.PairMatched
		}
		return out
	}
	return spec.Pairs{Layers: measure.PairGrid}
}
