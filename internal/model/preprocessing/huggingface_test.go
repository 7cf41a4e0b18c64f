package preprocessing

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model/logmel"
	"github.com/noether-ml/noether/tensor"
)

// noClass stands for a folder without config.json.
func noClass() string { return "" }

// TestFromHuggingFace reads configs of preprocessors, as published on the Hugging Face hub. A Frame
// says how images are resized and cropped, or the rate and length of waveforms. Range has the
// values for black and white, and Order is the order of the colour channels.
func TestFromHuggingFace(t *testing.T) {
	t.Parallel()
	half := []float32{0.5, 0.5, 0.5}
	imagenet, clip := presets["imagenet"], presets["clip"]
	cases := []struct {
		name, config string
		want         Settings
	}{
		{"ViT", `{"do_normalize": true, "do_rescale": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
			"image_processor_type": "ViTImageProcessor", "resample": 2, "rescale_factor": 0.00392156862745098, "size": {"height": 224, "width": 224}}`,
			Settings{Frame: dataset.Frame{Height: 224, Width: 224, Channels: 3, Interpolation: "bilinear"}, Mean: half, Std: half}},
		{"sizes as plain numbers", `{"do_normalize": true, "do_resize": true, "image_mean": 0.5, "image_std": 0.5, "size": 224}`,
			Settings{Frame: dataset.Frame{Height: 224, Width: 224, Channels: 3, Interpolation: "bilinear"}, Mean: half[:1], Std: half[:1]}},
		{"CLIP", `{"crop_size": 224, "do_center_crop": true, "do_normalize": true, "do_resize": true, "feature_extractor_type": "CLIPFeatureExtractor",
			"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": 224}`,
			Settings{Frame: dataset.Frame{Resize: 224, Height: 224, Width: 224, FloorCrop: true, Channels: 3, Interpolation: "bicubic"}, Mean: clip.Mean, Std: clip.Std}},
		{"DINOv2", `{"crop_size": {"height": 224, "width": 224}, "do_center_crop": true, "do_convert_rgb": true, "do_normalize": true, "do_rescale": true,
			"do_resize": true, "image_mean": [0.485, 0.456, 0.406], "image_processor_type": "BitImageProcessor", "image_std": [0.229, 0.224, 0.225],
			"resample": 3, "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256}}`,
			Settings{Frame: dataset.Frame{Resize: 256, Height: 224, Width: 224, FloorCrop: true, Channels: 3, Interpolation: "bicubic"}, Mean: imagenet.Mean, Std: imagenet.Std}},
		{"ConvNeXt's default crop_pct of 0.875", `{"crop_pct": null, "do_normalize": true, "do_resize": true, "feature_extractor_type": "ConvNextFeatureExtractor",
			"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 224}`,
			Settings{Frame: dataset.Frame{Resize: 256, Height: 224, Width: 224, FloorCrop: true, Channels: 3, Interpolation: "bicubic"}, Mean: imagenet.Mean, Std: imagenet.Std}},
		{"ConvNeXt from 384 pixels on, which is not cropped", `{"crop_pct": 0.875, "image_processor_type": "ConvNextImageProcessor", "resample": 3, "size": {"shortest_edge": 384}}`,
			Settings{Frame: dataset.Frame{Height: 384, Width: 384, Channels: 3, Interpolation: "bicubic"}, Mean: half, Std: half}},
		{"DeiT", `{"crop_size": 224, "do_center_crop": true, "feature_extractor_type": "DeiTFeatureExtractor", "resample": 3, "size": 256}`,
			Settings{Frame: dataset.Frame{Resize: 256, Square: true, Height: 224, Width: 224, FloorCrop: true, Channels: 3, Interpolation: "bicubic"}, Mean: half, Std: half}},
		{"MobileViT", `{"crop_size": 256, "do_center_crop": true, "do_flip_channel_order": true, "feature_extractor_type": "MobileViTFeatureExtractor", "resample": 2, "size": 288}`,
			Settings{Frame: dataset.Frame{Resize: 288, Height: 256, Width: 256, FloorCrop: true, Channels: 3, Interpolation: "bilinear"}, Order: "bgr"}},
		{"rescaled to [-1, 1]", `{"do_normalize": false, "image_mean": [0.5], "rescale_factor": 0.00784313725490196, "rescale_offset": true, "size": {"height": 8, "width": 9}}`,
			Settings{Frame: dataset.Frame{Height: 8, Width: 9, Channels: 3, Interpolation: "bilinear"}, Range: [2]float32{-1, 1}}},
		{"not rescaled, so 0 to 255", `{"do_rescale": false, "do_resize": false, "size": 4, "resample": 4}`,
			Settings{Frame: dataset.Frame{Channels: 3, Interpolation: "bilinear"}, Range: [2]float32{0, 255}}},
		{"wav2vec 2.0", `{"do_normalize": true, "feature_extractor_type": "Wav2Vec2FeatureExtractor", "feature_size": 1, "padding_side": "right",
			"padding_value": 0.0, "return_attention_mask": false, "sampling_rate": 16000}`, Settings{Frame: dataset.Frame{Rate: 16000}, Standardise: true}},
		{"HuBERT", `{"do_normalize": false, "feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": 8000}`, Settings{Frame: dataset.Frame{Rate: 8000}}},
		{"Whisper", `{"chunk_length": 30, "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128, "hop_length": 160, "n_fft": 400,
			"n_samples": 480000, "nb_max_frames": 3000, "padding_side": "right", "padding_value": 0.0, "sampling_rate": 16000}`,
			Settings{Frame: dataset.Frame{Rate: 16000, Length: 480000}, Features: &logmel.Settings{Rate: 16000, FFT: 400, Window: 400, Hop: 160, Mels: 128, High: 8000,
				Scale: "slaney", Area: true, Log: "log10", Offset: 1e-10, Clamp: true, Range: 8, Mean: -4, Std: 4, DropLast: true}}},
		{"AST", `{"do_normalize": true, "feature_extractor_type": "ASTFeatureExtractor", "feature_size": 1, "max_length": 1024, "mean": -4.25, "num_mel_bins": 128,
			"padding_side": "right", "padding_value": 0.0, "return_attention_mask": false, "sampling_rate": 16000, "std": 4.5}`,
			Settings{Frame: dataset.Frame{Rate: 16000}, Features: &logmel.Settings{Rate: 16000, Mels: 128, Low: 20, Mean: -4.25, Std: 9,
				Kaldi: &logmel.Kaldi{WindowType: "hanning", Preemphasis: 0.97, Frames: 1024}}}},
		{"CLAP", `{"chunk_length_s": 10, "feature_extractor_type": "ClapFeatureExtractor", "feature_size": 64, "fft_window_size": 1024, "frequency_max": 14000,
			"frequency_min": 50, "hop_length": 480, "max_length_s": 10, "n_fft": 1024, "nb_frequency_bins": 513, "nb_max_frames": 1000, "nb_max_samples": 480000,
			"padding": "repeatpad", "padding_side": "right", "padding_value": 0.0, "return_attention_mask": false, "sampling_rate": 48000, "top_db": null, "truncation": "rand_trunc"}`,
			Settings{Frame: dataset.Frame{Rate: 48000, Length: 480000, Repeat: "repeatpad"}, Features: &logmel.Settings{Rate: 48000, FFT: 1024, Window: 1024, Hop: 480, Mels: 64,
				Low: 50, High: 14000, Scale: "slaney", Area: true, Log: "db", Offset: 1e-10, Clamp: true}}},
		{"the defaults of MobileViT, which does not normalise", `{"image_processor_type": "MobileViTImageProcessor"}`,
			Settings{Frame: dataset.Frame{Resize: 224, Height: 256, Width: 256, FloorCrop: true, Channels: 3, Interpolation: "bicubic"}, Order: "bgr"}},
		{"EfficientNet, which divides twice", `{"image_processor_type": "EfficientNetImageProcessor", "do_resize": false, "include_top": true}`,
			Settings{Frame: dataset.Frame{Channels: 3, Interpolation: "bilinear"}, Mean: half, Std: []float32{0.25, 0.25, 0.25}}},
		{"EfficientNet without its top", `{"image_processor_type": "EfficientNetImageProcessorFast", "do_resize": false, "include_top": false}`,
			Settings{Frame: dataset.Frame{Channels: 3, Interpolation: "bilinear"}, Mean: half, Std: half}},
		{"ViViT, with values from -1 on", `{"image_processor_type": "VivitImageProcessor", "do_normalize": false}`,
			Settings{Frame: dataset.Frame{Resize: 256, Height: 224, Width: 224, FloorCrop: true, Channels: 3, Interpolation: "bilinear"}, Range: [2]float32{-1, 1}}},
		{"V-JEPA 2, whose size follows from the crop", `{"video_processor_type": "VJEPA2VideoProcessor", "crop_size": 224, "size": 300}`,
			Settings{Frame: dataset.Frame{Resize: 256, Height: 224, Width: 224, FloorCrop: true, Channels: 3, Interpolation: "bilinear"}, Mean: imagenet.Mean, Std: imagenet.Std}},
		{"sides that are multiples", `{"image_processor_type": "DPTImageProcessor", "size": {"height": 100, "width": 104}, "ensure_multiple_of": 14, "image_mean": 0, "image_std": 1}`,
			Settings{Frame: dataset.Frame{Height: 98, Width: 98, Channels: 3, Interpolation: "bicubic"}, Mean: []float32{0}, Std: []float32{1}}},
		{"null is a missing key", `{"image_processor_type": "ViTImageProcessor", "size": {"height": 8, "width": 9, "shortest_edge": null}, "resample": null, "do_grayscale": null}`,
			Settings{Frame: dataset.Frame{Height: 8, Width: 9, Channels: 3, Interpolation: "bilinear"}, Mean: half, Std: half}},
		{"processor_config.json of transformers 5", `{"image_processor": {"image_processor_type": "ViTImageProcessorFast", "size": {"height": 8, "width": 9}, "data_format": "channels_first"},
			"processor_class": "CLIPProcessor", "image_seq_length": 7}`,
			Settings{Frame: dataset.Frame{Height: 8, Width: 9, Channels: 3, Interpolation: "bilinear"}, Mean: half, Std: half}},
		{"processor_config.json for audio", `{"feature_extractor": {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": 8000}, "processor_class": "Wav2Vec2Processor"}`,
			Settings{Frame: dataset.Frame{Rate: 8000}, Standardise: true}},
		{"two processors that agree", `{"image_processor": {"image_processor_type": "VideoMAEImageProcessor"}, "video_processor": {"video_processor_type": "VideoMAEVideoProcessor"}}`,
			Settings{Frame: dataset.Frame{Resize: 224, Height: 224, Width: 224, FloorCrop: true, Channels: 3, Interpolation: "bilinear"}, Mean: half, Std: half}},
		{"no keys", `{}`, Settings{Frame: dataset.Frame{Channels: 3, Interpolation: "bilinear"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "preprocessor_config.json")
			if err := os.WriteFile(path, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadConfig(path)
			if err != nil {
				t.Fatal(err)
			}
			got.Mean, got.Std = []float32(got.Mean), []float32(got.Std)
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestFromHuggingFaceRefuses reads configs that are invalid, contradict themselves or ask for what
// Noether cannot do.
func TestFromHuggingFaceRefuses(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{`:                            "unexpected end",
		`[]`:                           "cannot unmarshal",
		`{"size": "large"}`:            "not a number or an object",
		`{"size": {}}`:                 "size needs shortest_edge",
		`{"size": -3}`:                 "size -3",
		`{"size": {"height": 3}}`:      "needs both height and width",
		`{"size": {"height": 9e9}}`:    "not a number or an object",
		`{"size": {"height": 999999}}`: "is not 1 to",
		`{"size": {"shortest_edge": 3, "longest_edge": 9}}`:   "longest_edge is not supported",
		`{"size": {"shortest_edge": 3, "width": 9}}`:          "both shortest_edge",
		`{"size": {"height": 3, "width": 4}, "crop_size": 2}`: "only squares",
		`{"crop_size": 2}`: "do_center_crop without do_resize",
		`{"size": 8, "crop_size": {"shortest_edge": 3}}`:                                                      "crop_size needs height",
		`{"size": {"shortest_edge": 8}, "crop_pct": 0.9}`:                                                     "crop_pct: 0.9",
		`{"feature_extractor_type": "ConvNextFeatureExtractor", "size": {"shortest_edge": 8}, "crop_pct": 7}`: "crop_pct is 7",
		`{"size": 8, "resample": 4}`:                                                                          "resample 4 is not supported",
		`{"size": {"max_height": 8, "max_width": 8}}`:                                                         "size with max_height",
		`{"rescale_factor": 0}`:                                                                               "rescale_factor 0",
		`{"do_normalize": true}`:                                                                              "needs image_mean and image_std",
		`{"image_mean": [0, 0], "image_std": [1, 1]}`:                                                         "mean has 2 values",
		`{"image_mean": [0, 0, 0], "image_std": [1, 1, 0]}`:                                                   "std[2] is 0",
		`{"do_pad": true}`:                                                                                    "do_pad is not supported",
		`{"size": 8, "do_pad": true, "pad_size": 9}`:                                                          "do_pad is not supported",
		`{"do_grayscale": true}`:                                                                              "do_grayscale: true is not supported",
		`{"size_divisor": 32}`:                                                                                "size_divisor: 32 is not supported",
		`{"ensure_multiple_of": 14}`:                                                                          "preprocess: {resize",
		`{"do_sharpen": true}`:                                                                                "do_sharpen: true is not supported",
		`{"gamma": 2}`:                                                                                        "gamma: 2 is not supported",
		`{"antialias": false}`:                                                                                "antialias: false is not supported",
		`{"image_processor_type": "GLPNImageProcessor"}`:                                                      "size_divisor: 32, the default of GLPNImageProcessor,",
		`{"image_processor_type": "DonutImageProcessor"}`:                                                     "do_thumbnail: true, the default of DonutImageProcessor,",
		`{"image_processor_type": "SamImageProcessor"}`:                                                       "steps of SamImageProcessor",
		`{"image_processor_type": "MyImageProcessor"}`:                                                        "processor MyImageProcessor is not known",
		`{"image_processor_type": "DetrImageProcessor"}`:                                                      "longest_edge is not supported",
		`{"image_processor_type": "ViTImageProcessor", "include_top": true}`:                                  "include_top: true",
		`{"image_processor_type": "DPTImageProcessor", "keep_aspect_ratio": true}`:                            "keep_aspect_ratio",
		`{"image_processor_type": "DINOv3ViTImageProcessor", "resample": 3}`:                                  "resample 3 of DINOv3",
		`{"video_processor_type": "VideoMAEVideoProcessor", "do_sample_frames": true}`:                        "do_sample_frames: true",
		`{"video_processor_type": "Qwen2VLVideoProcessor"}`:                                                   "Qwen2VLVideoProcessor",
		`{"image_processor": {"image_processor_type": "ViTImageProcessor"}, "feature_extractor": {"feature_extractor_type": "Wav2Vec2FeatureExtractor"}}`: "several processors that differ",
		`{"sampling_rate": 16000, "preemphasis": 0.97, "feature_extractor_type": "Wav2Vec2FeatureExtractor"}`:                                             "preemphasis: 0.97 is not supported",
		`{"feature_extractor_type": "Speech2TextFeatureExtractor", "num_mel_bins": 80, "sampling_rate": 16000}`:                                           "Speech2TextFeatureExtractor\" is not supported",
		`{"feature_extractor_type": "ClapFeatureExtractor"}`:                                                                                              "truncation fusion",
		`{"feature_extractor_type": "WhisperFeatureExtractor", "num_mel_bins": 80}`:                                                                       "num_mel_bins: 80 is not supported",
		`{"feature_extractor_type": "Wav2Vec2FeatureExtractor", "feature_size": 80}`:                                                                      "feature_size 80",
		`{"feature_extractor_type": "Wav2Vec2FeatureExtractor", "padding_value": 1}`:                                                                      "padding with 1",
		`{"feature_extractor_type": "Wav2Vec2FeatureExtractor", "padding_side": "left"}`:                                                                  `side "left"`,
		`{"feature_extractor_type": "WhisperFeatureExtractor", "dither": 0.1}`:                                                                            "dither 0.1",
		`{"feature_extractor_type": "WhisperFeatureExtractor", "do_normalize": true}`:                                                                     "do_normalize of Whisper",
		`{"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": -1}`:                                                                       "chunk_length -1",
		`{"feature_extractor_type": "WhisperFeatureExtractor", "sampling_rate": 8000}`:                                                                    "8000",
		`{"sampling_rate": 0}`: "feature_extractor_type",
		`{"feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": 0}`: "sampling_rate 0",
		`{"sampling_rate": "x"}`: "sampling_rate",
	} {
		if _, err := parseHuggingFace([]byte(config), noClass); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", config, err, want)
		}
	}
	if _, err := ReadConfig(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("no error for a missing file")
	}
}

// TestClassOfModelType reads a config that names no class, beside a config.json.
func TestClassOfModelType(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "preprocessor_config.json")
	for file, text := range map[string]string{"config.json": `{"model_type": "dinov2"}`, "preprocessor_config.json": `{"size": 300}`} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadConfig(path)
	if want := (dataset.Frame{Resize: 300, Height: 224, Width: 224, FloorCrop: true, Channels: 3, Interpolation: "bicubic"}); err != nil || got.Frame != want {
		t.Errorf("%+v, error %v; want the frame %+v of BitImageProcessor, the class of dinov2", got, err, want)
	}
}

// TestEveryClass reads the defaults of each class of the library. They are applied, or refused with
// what to do. python/tests/test_processors.py compares the pixels.
func TestEveryClass(t *testing.T) {
	t.Parallel()
	for kind, table := range map[string]map[string]processorClass{"image": processors().Image, "video": processors().Video} {
		accepted := 0
		for name := range table {
			config := fmt.Sprintf(`{"%s_processor_type": "%s%sProcessor"}`, kind, name, strings.ToUpper(kind[:1])+kind[1:])
			_, err := parseHuggingFace([]byte(config), noClass)
			if err == nil {
				accepted++
			} else if !strings.Contains(err.Error(), "preprocess: {") {
				t.Errorf("%s: error %v, which does not say what to do", config, err)
			}
		}
		if least := map[string]int{"image": 35, "video": 4}[kind]; accepted < least {
			t.Errorf("%d classes of %s are read with their defaults, want %d", accepted, kind, least)
		}
	}
}

// FuzzHuggingFace checks that a config that is accepted gives valid Settings.
func FuzzHuggingFace(f *testing.F) {
	f.Add([]byte(`{"feature_extractor_type": "PoolFormerFeatureExtractor", "crop_pct": 0.9, "size": {"shortest_edge": 224}, "image_mean": [0.5, 0.5, 0.5], "image_std": 0.5}`))
	f.Add([]byte(`{"crop_size": 224, "feature_extractor_type": "DeiTFeatureExtractor", "resample": 3, "size": 256}`))
	f.Add([]byte(`{"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "n_fft": 400, "hop_length": 160, "chunk_length": 30}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		p, err := parseHuggingFace(config, noClass)
		if err != nil {
			return
		}
		if p.Frame.Rate > 0 {
			if err := p.CheckAudio(); err != nil {
				t.Errorf("the config was accepted, but CheckAudio says: %v", err)
			}
			return
		}
		if err := p.Check(3); err != nil {
			t.Errorf("the config was accepted, but Check says: %v", err)
		}
		if f := p.Frame; max(f.Resize, f.Height, f.Width) <= 512 {
			if _, err := f.Tensor(tensor.New(3, 5, 7)); err != nil {
				t.Errorf("the config was accepted, but preprocessing an image fails: %v", err)
			}
		}
	})
}
