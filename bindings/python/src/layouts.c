/* How quantised tensors are stored. Tests: test_values.py. */
#include "piece.h"
#include "safetensors_convert.h"

PyObject *pysft_layouts_of(const pysft_store *store) {
    size_t count;
    sft_conversion *values = pysft_store_values(store, &count);
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && values && i < count; i++) {
        sft_convert_action action = sft_conversion_action(values, i, NULL);
        bool refused = action == SFT_CONVERT_REFUSED;
        if (action != SFT_CONVERT_DEQUANTIZE && !refused) continue;
        PyObject *name = pysft_text(sft_conversion_part(values, i).spec.name);
        PyObject *layout = refused ? Py_NewRef(Py_None)
                                   : pysft_text(sft_conversion_layout(values, i));
        if (!name || !layout || PyDict_SetItem(dict, name, layout) < 0) Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(layout);
    }
    return dict;
}
