package spec

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/internal/model"
)

// preprocessorConfig is the file in which Hugging Face's models store their preprocessing.
const preprocessorConfig = "preprocessor_config.json"

// Preprocessing returns the preprocessing of spec, an entry in the list models of the study file s.
// The ONNX file of the model is at path. If the entry has none, it reads preprocessor_config.json
// beside the model, see model.ConfigBeside. If there is no such file, it reads the preprocessing
// that the command "noether train" wrote into the metadata of the model, or returns the zero value
// if there is none. warn gets a sentence on a preprocessing that the entry does not set.
func (s *Study) Preprocessing(ctx context.Context, spec Model, path string, warn func(string)) (model.Preprocess, error) {
	switch beside := model.ConfigBeside(path, preprocessorConfig); {
	case spec.Preprocess.configPath != nil:
		file, err := s.localPath(ctx, *spec.Preprocess.configPath, "")
		if err != nil {
			return model.Preprocess{}, err
		}
		return model.ReadPreprocessorConfig(file)
	case spec.Preprocess.given:
		return spec.Preprocess.Preprocess, nil
	default:
		if beside == "" {
			p, text, found, err := RecordedPreprocess(path)
			if found && text != "none" && err == nil {
				warn(fmt.Sprintf("model %s: using the preprocessing of its metadata: %s", spec.Name, text))
			}
			return p, err
		}
		warn(fmt.Sprintf("model %s: using the preprocessing of %s", spec.Name, beside))
		p, err := model.ReadPreprocessorConfig(beside)
		if err != nil {
			return p, fmt.Errorf("%w; set preprocess in the study to ignore that file", err)
		}
		return p, nil
	}
}
