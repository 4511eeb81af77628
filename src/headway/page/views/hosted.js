// Where the folder's page comes in.

import { load } from "../engine/load.js";
import { showPage } from "./page.js";

showPage(() => load(new URL("../model.headway", import.meta.url)));
