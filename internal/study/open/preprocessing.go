package open

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/onnx"
)

// PreprocessorConfig returns the path of the file beside a model in which Hugging Face's models
// store their preprocessing, or "". As in the library transformers, the processors that
// processor_config.json holds come before preprocessor_config.json.
func PreprocessorConfig(modelPath string) string {
	if file := model.ConfigBeside(modelPath, "processor_config.json"); file != "" && preprocessing.HasProcessor(file) {
		return file
	}
	if file := model.ConfigBeside(modelPath, "preprocessor_config.json"); file != "" {
		return file
	}
	return model.ConfigBeside(modelPath, "video_preprocessor_config.json")
}

// Preprocessing returns the preprocessing of a model: that of its entry, else of its
// PreprocessorConfig, else of its metadata, else zero. warn gets a sentence on a preprocessing that
// the entry does not set.
func (f *Files) Preprocessing(ctx context.Context, m spec.Model, path string, warn func(string)) (preprocessing.Settings, error) {
	switch {
	case m.Preprocess.File != nil:
		file, err := f.local(ctx, *m.Preprocess.File, "")
		if err != nil {
			return preprocessing.Settings{}, err
		}
		return preprocessing.ReadConfig(file)
	case m.Preprocess.Given:
		return m.Preprocess.Settings, nil
	case m.Activations.String() != "" || m.URL != "" || m.Python != "":
		return preprocessing.Settings{}, nil
	}
	if beside := PreprocessorConfig(path); beside != "" {
		warn(fmt.Sprintf("model %s: using the preprocessing of %s", m.Name, beside))
		p, err := preprocessing.ReadConfig(beside)
		if err != nil {
			err = fmt.Errorf("%w; set preprocess in the study to ignore that file", err)
		}
		return p, err
	}
	p, text, found, err := RecordedPreprocess(path)
	if found && text != "none" && err == nil {
		warn(fmt.Sprintf("model %s: using the preprocessing of its metadata: %s", m.Name, text))
	}
	return p, err
}

// PreprocessFor returns the preprocessing that a text describes: a preset, the path of a
// preprocessor_config.json, or a mapping in braces. For an empty text it reads the model's
// PreprocessorConfig, or else its metadata. found is the path that was read, or "".
func PreprocessFor(text, modelPath string) (p preprocessing.Settings, found string, err error) {
	if text == "" {
		if text = PreprocessorConfig(modelPath); text == "" {
			p, _, recorded, err := RecordedPreprocess(modelPath)
			if recorded {
				found = modelPath
			}
			return p, found, err
		}
	}
	switch {
	case filepath.Ext(text) == ".json":
		p, err = preprocessing.ReadConfig(text)
		return p, text, err
	case strings.HasPrefix(text, "{"):
		p, err = spec.ParsePreprocess("--preprocess", text)
		return p, "", err
	}
	p, err = preprocessing.Preset(text)
	return p, "", err
}

// RecordedPreprocess returns the preprocessing that noether train or Ultralytics has recorded in
// the metadata of an ONNX file, and its text. found is false if there is none or the file cannot be
// read.
func RecordedPreprocess(path string) (p preprocessing.Settings, text string, found bool, err error) {
	text, err = onnx.ReadMetadata(path, spec.PreprocessKey)
	if err != nil {
		return p, "", false, nil // opening the model reports the error
	}
	if text == "" {
		p, text, err = ultralytics(path)
		return p, text, text != "", err
	}
	if p, err = spec.ParsePreprocess(path, text); err != nil {
		return p, text, false, fmt.Errorf("%s in the metadata of %s is %q: %w; set preprocess to ignore it", spec.PreprocessKey, path, text, err)
	}
	return p, text, true, nil
}
