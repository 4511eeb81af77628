// Entry of a folder's page.

import { load } from "../engine/load.js";
import { showPage } from "./page.js";

showPage(() => load(new URL("../model.headway", import.meta.url)));
