/* The library without its part label: nothing tells an adapter from another model. */
#include "convert/adapter.h"

sfti_adapter_test *const sfti_hook_adapter = NULL;
