package preprocessing

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// stateYourself says how to go on without a config.
const stateYourself = "state the preprocessing in the study instead: preprocess: {resize: ..., crop: ..., mean: ..., std: ...}"

// inertKeys are the keys that change neither pixels nor samples, each with its reason.
var inertKeys = map[string]string{
	"_name_or_path":         "the repository of the config",
	"_processor_class":      "the class that joins processors",
	"_valid_kwargs_names":   "names of arguments",
	"_valid_processor_keys": "names of arguments",
	"auto_map":              "where the code of a class of one's own lies",
	"processor_class":       "the class that joins processors",
	"transformers_version":  "the version that wrote the config",

	"data_format":       "order of the axes of the result, which the model's input decides here",
	"device":            "where it is computed",
	"disable_grouping":  "order of the computation",
	"do_convert_rgb":    "images always get the channels of the model",
	"input_data_format": "order of the axes of the image",
	"model_input_names": "names of the model's inputs",
	"return_metadata":   "a further output",
	"return_tensors":    "type of the result",

	"do_convert_annotations":            "annotations",
	"do_reduce_labels":                  "annotations",
	"reduce_labels":                     "annotations, in older versions",
	"format":                            "annotations",
	"ignore_index":                      "annotations",
	"keypoint_heatmap_downscale_factor": "annotations",
	"keypoint_heatmap_sigma":            "annotations",
	"mask_pad_size":                     "annotations",
	"mask_size":                         "annotations",
	"num_labels":                        "annotations",
	"return_segmentation_masks":         "annotations",
	"apply_ocr":                         "recognises text in the image as it was",
	"ocr_lang":                          "parameter of apply_ocr",
	"tesseract_config":                  "parameter of apply_ocr",
	"image_seq_length":                  "number of the tokens of an image",
	"codebook_crop_size":                "Flava's second image, for its codebook",
	"codebook_do_center_crop":           "Flava's second image, for its codebook",
	"codebook_do_map_pixels":            "Flava's second image, for its codebook",
	"codebook_do_normalize":             "Flava's second image, for its codebook",
	"codebook_do_rescale":               "Flava's second image, for its codebook",
	"codebook_do_resize":                "Flava's second image, for its codebook",
	"codebook_image_mean":               "Flava's second image, for its codebook",
	"codebook_image_std":                "Flava's second image, for its codebook",
	"codebook_resample":                 "Flava's second image, for its codebook",
	"codebook_rescale_factor":           "Flava's second image, for its codebook",
	"codebook_size":                     "Flava's second image, for its codebook",
	"return_codebook_pixels":            "Flava's second image, for its codebook",
	"return_image_mask":                 "Flava's masks",
	"input_size_patches":                "Flava's masks",
	"mask_group_max_aspect_ratio":       "Flava's masks",
	"mask_group_max_patches":            "Flava's masks",
	"mask_group_min_aspect_ratio":       "Flava's masks",
	"mask_group_min_patches":            "Flava's masks",
	"total_mask_patches":                "Flava's masks",
	"prompt_scale_to_meter":             "the depth map that Prompt Depth Anything takes as a prompt",
	"background_color":                  "parameter of do_pad, which is an error where it uses one",
	"min_patches":                       "parameter of crop_to_patches, which is an error if true",
	"max_patches":                       "parameter of crop_to_patches, which is an error if true",
	"fps":                               "parameter of do_sample_frames, which is an error if true",
	"num_frames":                        "parameter of do_sample_frames, which is an error if true",
	"image_processor_type":              "the class",
	"feature_extractor_type":            "the class",
	"video_processor_type":              "the class",
}

// appliedKeys are the keys that this package applies, each for the classes in its list (empty: for
// all).
var appliedKeys = map[string][]string{
	"do_resize": nil, "size": nil, "resample": nil, "default_to_square": nil, "do_center_crop": nil, "crop_size": nil,
	"do_rescale": nil, "rescale_factor": nil, "do_normalize": nil, "image_mean": nil, "image_std": nil,
	"do_pad": nil, "pad_size": nil, "do_flip_channel_order": nil,
	"crop_pct":           {"ConvNext", "PoolFormer"},
	"ensure_multiple_of": {"DPT", "PromptDepthAnything"},
	"include_top":        {"EfficientNet"},
	"offset":             {"Vivit"},
	"rescale_offset":     {"EfficientNet", ""},
}

// harmless reports whether a key that is not applied changes nothing with this value.
func harmless(key, value string) bool {
	switch key {
	case "size_divisor", "size_divisibility", "ensure_multiple_of":
		return value == "1" || value == "0"
	case "crop_to_patches", "include_top", "keep_aspect_ratio", "offset", "rescale_offset", "split_image", "use_thumbnail":
		return value == "false"
	}
	return strings.HasPrefix(key, "do_") && value == "false" // a step that is left out
}

// checkKeys returns an error for a key of a config, or of its class's defaults, that is neither
// applied nor inert nor harmless.
func (c processorClass) checkKeys(config map[string]json.RawMessage) error {
	bad := func(key, value string) bool {
		classes, applied := appliedKeys[key]
		if _, inert := inertKeys[key]; inert || applied && (classes == nil || slices.Contains(classes, c.short())) {
			return false
		}
		return !harmless(key, value)
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if value := string(config[key]); bad(key, value) {
			return fmt.Errorf("%s: %.80s is not supported, and may change the model's input: %s", key, value, stateYourself)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Defaults)) {
		value := string(c.Defaults[key])
		if _, given := config[key]; !given && bad(key, value) {
			return fmt.Errorf("%s: %.80s, the default of %s, is not supported: %s", key, value, c.Name, stateYourself)
		}
	}
	if c.Name != "" && !c.Standard {
		return fmt.Errorf("the steps of %s are not supported: %s", c.Name, stateYourself)
	}
	return nil
}
